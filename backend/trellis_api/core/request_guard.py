"""What holds for every request before a route sees it: its texts are UTF-8, its body comes and has an end."""

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from trellis_api.core.errors import (
    BodyTooLarge,
    BodyTooSlow,
    DomainError,
    InvalidRequest,
    NotFound,
    render_error,
)
from trellis_api.core.settings import Settings

#: A body that stops for so long, or that is slower than this from then on, is not waited for.
_PATIENCE_S = 60.0
_SLOWEST_BYTES_PER_S = 1024
#: Half of a surrogate pair, as JSON writes it; pairs have one too, so a hit only means to look closer.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN_FIELD = 200
#: Where a connection keeps its ``_Paced``.
_BODY = "trellis.body"
_GZIP_START = b"\x1f\x8b"
#: Bodies below it are checked at once: a thread would take longer.
_QUICK_BYTES = 64 * 1024


class RequestGuard:
    """Plain ASGI, so that uploads pass through as they come; other bodies are taken in whole, up to a limit.

    FastAPI reads a body of any type to its end before it asks for a token. A route that reads the stream
    itself, which it does after that, says so with ``stream_body``.
    """

    def __init__(self, app: ASGIApp, settings: Settings, *, patience_s: float = _PATIENCE_S) -> None:
        self._app, self._patience_s = app, patience_s
        # Batches of events are JSON, too, and have a limit of their own.
        self._limit_bytes = max(settings.max_request_bytes, settings.max_batch_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "websocket":
            await _refuse_websocket(WebSocket(scope, receive, send))
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        paced = scope[_BODY] = _Paced(receive, self._patience_s, self._limit_bytes)
        headers = Headers(scope=scope)
        try:
            _check_address(scope)
            if _is_json(headers):
                body = await _read(paced)
                if body is None:
                    return  # the client has gone
                if _is_gzip(headers, body):
                    pass  # batches of events; other routes refuse it, as they do not unpack
                elif len(body) < _QUICK_BYTES:
                    _check_json(body)
                else:  # off the event loop: other requests are not to wait for it
                    await run_in_threadpool(_check_json, body)
                paced.put_back(body)
        except DomainError as error:
            await render_error(error, path=scope["path"])(scope, receive, send)
            return
        await self._app(scope, paced.receive, send)


async def _refuse_websocket(connection: WebSocket) -> None:
    """Refuse a connection with an error that says so; servers that cannot send one refuse it without."""
    error = NotFound("WebSocket connections are not supported. Responses are streamed over HTTP.")
    if "websocket.http.response" in connection.scope.get("extensions", {}):
        await connection.send_denial_response(render_error(error, path=connection.scope["path"]))
    else:
        await connection.close()


class _Paced:
    """The messages of a connection; ``BodyTooSlow`` or ``BodyTooLarge`` where its body has no end."""

    def __init__(self, receive: Receive, patience_s: float, limit_bytes: int) -> None:
        self._receive, self._patience_s = receive, patience_s
        self._limit_bytes: float = limit_bytes
        #: Not the time that the application takes between two messages.
        self._waited_s = 0.0
        self._received_bytes = 0
        self._has_ended = False
        self._body: bytes | None = None

    def lift_limit(self) -> None:
        """Let the body have any size."""
        self._limit_bytes = math.inf

    def put_back(self, body: bytes) -> None:
        """Let the application receive this body, which was received already."""
        self._body = body

    async def receive(self) -> Message:
        """Return the next message.

        Once the body is read there is no deadline: streams wait for a disconnect.
        """
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._has_ended:
            return await self._receive()
        clock = asyncio.get_running_loop().time
        started = clock()
        left_s = self._patience_s + self._received_bytes / _SLOWEST_BYTES_PER_S - self._waited_s
        try:
            async with asyncio.timeout(min(left_s, self._patience_s)):
                message = await self._receive()
        except TimeoutError:
            self._has_ended = True
            raise BodyTooSlow(
                f"The body did not come: nothing for {self._patience_s:g} s, or less than "
                f"{_SLOWEST_BYTES_PER_S} bytes a second. Send it again.",
                headers={"Connection": "close"},
            ) from None
        self._waited_s += clock() - started
        self._received_bytes += len(message.get("body", b""))
        if self._received_bytes > self._limit_bytes:
            raise BodyTooLarge(
                f"Requests are limited to {self._limit_bytes} bytes (TRELLIS_MAX_REQUEST_BYTES). Use "
                "uploads for files.",
                {"limit": self._limit_bytes},
                headers={"Connection": "close"},
            )
        self._has_ended = not message.get("more_body", False)
        return message


def stream_body(request: Request) -> AsyncIterator[bytes]:
    """Stream the body as it arrives, of any size: for routes that check the caller and set a limit."""
    if _BODY in request.scope:
        request.scope[_BODY].lift_limit()
    return request.stream()


async def _read(paced: _Paced) -> bytes | None:
    """Read the whole body; None if the client disconnected before its end."""
    body = bytearray()
    while True:
        message = await paced.receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _is_json(headers: Headers) -> bool:
    """Tell whether a route reads the body as JSON: one without a type counts, as for FastAPI."""
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return False
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in ("", "application/json") or kind.endswith("+json")


def _is_gzip(headers: Headers, body: bytes) -> bool:
    return headers.get("content-encoding", "").lower() == "gzip" and body.startswith(_GZIP_START)


def _check_address(scope: Scope) -> None:
    """Check that path parts and query values are valid UTF-8 without NUL once percent-decoded."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    for part in path.partition(b"?")[0].split(b"/"):
        _check_text(unquote_to_bytes(part), "path")
    query: bytes = scope["query_string"]
    for pair in query.split(b"&"):
        name, _, value = map(unquote_to_bytes, pair.partition(b"="))
        _check_text(name, "query")
        _check_text(value, f"query.{name.decode()}")


def _check_text(text: bytes, field: str) -> None:
    try:
        if "\x00" in text.decode():
            raise _malformed(field, "string_nul", "NUL characters are not allowed")
    except UnicodeDecodeError:
        raise _malformed(field, "string_unicode", "not valid UTF-8") from None


def _check_json(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise _malformed("body", "string_unicode", f"byte {error.start} is not UTF-8") from None
    if not _SURROGATE.search(body):
        return
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return  # no JSON: the route says so
    field = _find_lone_surrogate(parsed)
    if field is not None:
        raise _malformed(field, "string_unicode", "unpaired surrogates are not valid UTF-8")


def _find_lone_surrogate(parsed: Any) -> str | None:
    """Find the place of a text that UTF-8 cannot encode; a key counts as its object."""
    # One entry per level and the place only of a hit: a long key over many items must not cost their product.
    levels = [("", iter([("", parsed)]))]
    while levels:
        for key, value in levels[-1][1]:
            texts = value if isinstance(value, dict) else [value] if isinstance(value, str) else []
            if not all(map(_is_encodable, texts)):
                return ".".join([*(level for level, _ in levels[2:]), key]) or "body"
            if isinstance(value, dict | list):
                levels.append((key, _list_entries(value)))
                break
        else:
            levels.pop()
    return None


def _list_entries(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        return iter(value.items())
    return ((str(at), each) for at, each in enumerate(value))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _malformed(field: str, code: str, message: str) -> InvalidRequest:
    field = field[:_SHOWN_FIELD]
    return InvalidRequest(f"{field}: {message}", [{"code": code, "field": field, "message": message}])
