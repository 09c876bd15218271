"""The platform's public API, as scripts and this command line use it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from trellis_contracts.connection import (
    LOCAL_VARIABLES,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    BadConnectionFile,
    Connection,
    find_connection,
)

from trellis_cli.errors import ExitCode, Problem, Refusal
from trellis_cli.services.platform import Platform, load_platform

API = "/api/v1"
TIMEOUT_S = 60.0


class ApiClient:
    """Speaks to the API with a bearer token; what it refuses becomes a `Problem` in the API's own words.

    ``trellis.Client`` of the SDK sends requests, turns pages and reads errors much like it; this one adds
    headers, streams, exit codes and hints, and raises errors of its own.
    """

    def __init__(self, url: str, token: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self.url = url.rstrip("/")
        self.token_header = f"Bearer {token}"
        self._http = httpx.Client(
            base_url=self.url, headers={"Authorization": self.token_header}, timeout=timeout_s
        )

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Call an endpoint below /api/v1 and return its decoded answer (None if it is empty)."""
        answer = self.send(method, path, **options)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise Problem(
                f"{self.url} did not return JSON for {method} {path}",
                hint="is this the URL of a Trellis platform?",
                exit_code=ExitCode.UNREACHABLE,
            ) from None

    def send(self, method: str, path: str, *, base: str = API, **options: Any) -> httpx.Response:
        """Send a request and return the response itself, for callers that read headers."""
        with self._reaching():
            answer = self._http.request(method, f"{base}{path}", **options)
        if answer.is_error:
            raise Refusal(describe_error(answer), status=answer.status_code)
        return answer

    @contextmanager
    def stream(self, path: str, **params: Any) -> Iterator[Iterator[bytes]]:
        """Stream a response in pieces, for content that may be too large for memory."""
        wanted = {name: each for name, each in params.items() if each is not None}
        with self.open(path, params=wanted) as answer:
            yield answer.iter_bytes()

    @contextmanager
    def open(self, path: str, **options: Any) -> Iterator[httpx.Response]:
        """Open a response whose body is still to be read."""
        with self._reaching(), self._http.stream("GET", f"{API}{path}", **options) as answer:
            if answer.is_error:
                answer.read()
                raise Refusal(describe_error(answer), status=answer.status_code)
            yield answer

    @contextmanager
    def events(self, address: str, body: Any) -> Iterator[Iterator[str]]:
        """POST to an address and yield the data of the server-sent events as they arrive."""
        # Between two tokens may pass any time: it is the platform that gives up.
        with (
            self._reaching(),
            self._http.stream("POST", address, json=body, timeout=None) as answer,
        ):
            if answer.is_error:
                answer.read()
                raise Refusal(describe_error(answer), status=answer.status_code)
            lines = answer.iter_lines()
            yield (line.removeprefix("data:").strip() for line in lines if line.startswith("data:"))

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPError as error:
            raise Problem(
                f"can't reach the platform at {self.url} ({error})",
                hint="start it with ./init.sh, or choose another one with TRELLIS_URL or trellis login URL",
                exit_code=ExitCode.UNREACHABLE,
            ) from error

    def get(self, path: str, **params: Any) -> Any:
        """Send a GET request with query parameters; those that are None are left out."""
        return self.request(
            "GET", path, params={name: each for name, each in params.items() if each is not None}
        )

    def post(self, path: str, body: Any = None) -> Any:
        """POST a JSON body."""
        return self.request("POST", path, json=body)

    def delete(self, path: str) -> None:
        """Send a DELETE request."""
        self.request("DELETE", path)

    def upload(self, path: str, file: Path, fields: dict[str, str]) -> Any:
        """POST a file as a form; it is read while it is sent."""
        with file.open("rb") as handle:
            return self.request("POST", path, data=fields, files={"file": (file.name, handle)}, timeout=None)

    def pages(self, path: str, **params: Any) -> Iterator[Any]:
        """Iterate over every item of a paged list."""
        cursor: str | None = None
        while True:
            page = self.get(path, cursor=cursor, **params)
            yield from page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return


def describe_error(answer: httpx.Response) -> str:
    """Format the API's error: its message, then each issue with its suggestion."""
    try:
        body = answer.json()
        if isinstance(body.get("error"), dict):  # the form of /v1
            return str(body["error"]["message"])
        message, details = body["message"], body.get("details")
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{answer.request.method} {answer.request.url.path}: HTTP {answer.status_code}"
    lines = [message]
    for issue in details if isinstance(details, list) else []:
        if isinstance(issue, dict) and "message" in issue:
            where = issue.get("field")
            lines.append(f"  {where}: {issue['message']}" if where else f"  {issue['message']}")
            if issue.get("suggestion"):
                lines.append(f"    did you mean {issue['suggestion']}?")
    return "\n".join(lines)


def connect() -> ApiClient:
    """Connect to the platform of TRELLIS_URL and TRELLIS_TOKEN, else of the login, else of the data root.

    Where the environment names a platform of this machine (TRELLIS_DATA_ROOT), a login does not count.
    """
    url, token = os.environ.get(URL_VARIABLE), os.environ.get(TOKEN_VARIABLE)
    if url and token:
        return ApiClient(url, token)
    is_local = any(os.environ.get(name) for name in LOCAL_VARIABLES)
    if not is_local and (stored := _read_login()):
        return ApiClient(stored.url, stored.token)
    platform = load_platform()
    return ApiClient(url or platform.url, token or _read_admin_token(platform))


def connect_to(platform: Platform, *, timeout_s: float = TIMEOUT_S) -> ApiClient:
    """Connect to this machine's platform as its administrator, regardless of environment and login."""
    return ApiClient(platform.url, _read_admin_token(platform), timeout_s=timeout_s)


def _read_admin_token(platform: Platform) -> str:
    path = platform.settings.admin_token_path
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        raise Problem(
            f"no platform is running in {platform.settings.data_root}",
            hint="start it with ./init.sh, set TRELLIS_DATA_ROOT, or log in to a remote "
            "platform: trellis login URL",
            exit_code=ExitCode.UNREACHABLE,
        ) from None
    except PermissionError:
        raise Problem(
            f"{path} is only readable by its owner",
            hint="run as that user, or set TRELLIS_TOKEN",
            exit_code=ExitCode.UNREACHABLE,
        ) from None


def _read_login() -> Connection | None:
    try:
        return find_connection()
    except BadConnectionFile as error:
        raise Problem(str(error), exit_code=ExitCode.USAGE) from error
