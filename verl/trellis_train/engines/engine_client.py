"""How the parts of an endpoint's run ask its engine for something, by the engine's own paths."""

import json
import urllib.error
import urllib.request

#: Between two looks at what the platform wants.
POLL_S = 0.3
#: Of why something was refused, as it is reported.
_MAX_REASON = 500


class EngineRefused(Exception):
    """The engine answered with an error; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EngineClient:
    """Asks an engine on this machine, with its key."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key

    def post(self, path: str, body: dict[str, str], *, timeout_s: float) -> None:
        """Send a request; raises ``EngineRefused`` for an error status, ``OSError`` without an answer."""
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self._url}{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s):  # noqa: S310
                return
        except urllib.error.HTTPError as error:
            message = _read_message(error.read()) or f"status {error.code}"
            raise EngineRefused(error.code, message) from error


def describe(error: Exception) -> str:
    """Return why something was refused, in as many words as are reported."""
    return (str(error) or type(error).__name__)[:_MAX_REASON]


def _read_message(content: bytes) -> str | None:
    try:
        return str(json.loads(content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return None
