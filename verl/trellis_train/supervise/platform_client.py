"""One kept-alive connection to the platform's ingest API (standard library alone: fast to import)."""

import gzip
import http.client
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trellis_contracts.attempt import read_address

logger = logging.getLogger(__name__)
#: Bodies below this are not worth compressing.
_MIN_GZIP_BYTES = 1_000
_TIMEOUT_S = 15.0
#: A 409 that says: a newer attempt has taken over.
_STALE_ATTEMPT = "stale_attempt"


class PlatformAwayError(Exception):
    """No usable answer: the API is down, restarting, overloaded, or not reachable. Try again."""


class RefusedError(Exception):
    """The platform no longer knows this attempt: its token, its job or its number is not valid any more."""


class RejectedError(Exception):
    """The platform will never accept this body."""


@dataclass(frozen=True)
class Answer:
    """A decoded answer of the API: 200, or 409 when the sequence numbers have to be agreed again."""

    status: int
    body: dict[str, Any]


class PlatformClient:
    """Posts JSON to ``/api/v1/ingest/jobs/<job>/...``. Not for use by two threads at once."""

    def __init__(self, ingest_url: str, job_id: str, token: str, *, address_file: Path | None = None) -> None:
        """Take the URL; ``address_file`` names another address if the API has moved since."""
        self._job_id = job_id
        self._address_file = address_file
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._go_to(ingest_url)

    def post(self, name: str, body: bytes) -> Answer:
        """Post to ``.../<name>``; an answer, or one of this module's three errors.

        Where the API is away, or another server refuses in its place, the next call goes to where it is now.
        """
        try:
            return self._post(name, body)
        except (PlatformAwayError, RefusedError):
            self._follow()
            raise

    def _go_to(self, url: str) -> None:
        address = urlsplit(url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(address.hostname or "127.0.0.1", address.port, timeout=_TIMEOUT_S)
        self._prefix = f"{address.path.rstrip('/')}/api/v1/ingest/jobs/{self._job_id}"
        self._url = url

    def _follow(self) -> None:
        if self._address_file is None:
            return
        try:
            url = read_address(self._address_file)
            if url is None or url == self._url:
                return
            self._connection.close()
            self._go_to(url)
        except (OSError, ValueError) as error:
            logger.warning("the API's address could not be read: %s", error)
            return
        logger.warning("the API has moved to %s", url)

    def _post(self, name: str, body: bytes) -> Answer:
        headers = dict(self._headers)
        if len(body) >= _MIN_GZIP_BYTES:
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        try:
            self._connection.request("POST", f"{self._prefix}/{name}", body, headers)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise PlatformAwayError(f"{type(error).__name__}: {error}") from error
        return _interpret(response.status, text)


def _interpret(status: int, text: bytes) -> Answer:
    shown = text[:300].decode(errors="replace")
    if status in (401, 403, 404):
        raise RefusedError(f"HTTP {status}: {shown}")
    if status in (400, 413, 415, 422):
        raise RejectedError(f"HTTP {status}: {shown}")
    if status not in (200, 201, 202, 409):
        raise PlatformAwayError(f"HTTP {status}: {shown}")
    try:
        body = json.loads(text)
    except ValueError as error:
        raise PlatformAwayError(f"HTTP {status} without JSON: {shown}") from error
    if not isinstance(body, dict):
        raise PlatformAwayError(f"HTTP {status} with an unexpected body: {shown}")
    if body.get("error") == _STALE_ATTEMPT:
        raise RefusedError(f"HTTP {status}: {shown}")
    return Answer(status, body)
