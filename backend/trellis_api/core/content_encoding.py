"""Compresses answers: which encoding a client takes, and JSON on its way out."""

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Below it a packet is sent anyway.
_SMALLEST_BYTES = 1024
#: A hundredth of a second for a megabyte of metrics; level 9 takes three times as long for 2 % less.
_LEVEL = 5


def choose_encoding(accepted: str, offered: Sequence[str]) -> str | None:
    """Choose one of ``offered`` by the ``Accept-Encoding`` of a request (RFC 9110, section 12.5.3).

    Among equally welcome ones the first offered wins. Returns None where the client takes none of them.
    """
    weights = dict(map(_read_coding, filter(None, accepted.lower().split(","))))
    welcome = {name: weights.get(name, weights.get("*", 0.0)) for name in offered}
    best = max(offered, key=lambda name: welcome[name], default=None)
    return best if best is not None and welcome[best] > 0 else None


def _read_coding(part: str) -> tuple[str, float]:
    """Split ``gzip;q=0.5`` into a name and a weight; a weight that isn't a number rejects the coding."""
    name, *parameters = (each.strip() for each in part.split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return name, float(value)
            except ValueError:
                return name, 0.0
    return name, 1.0


class JsonCompression:
    """Plain ASGI: gzips JSON for clients that take it; streams of events, files and archives pass untouched.

    What is secret travels in headers and cookies, which are not compressed, and other sites cannot make a
    browser ask (the session cookie is SameSite=Strict): the length of an answer tells them nothing (BREACH).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_taken = choose_encoding(Headers(scope=scope).get("accept-encoding", ""), ("gzip",)) is not None
        forward: Send = send

        async def choose(message: Message) -> None:
            nonlocal forward
            if message["type"] == "http.response.start" and _is_json(Headers(raw=message["headers"])):
                if is_taken:  # only now: a responder allocates a compressor
                    gzip = GZipResponder(self._app, _SMALLEST_BYTES, compresslevel=_LEVEL)
                    gzip.send = send
                    forward = gzip.send_with_compression
                else:
                    MutableHeaders(scope=message).add_vary_header("Accept-Encoding")
            await forward(message)

        await self._app(scope, receive, choose)


def _is_json(headers: Headers) -> bool:
    """Tell whether a response is a route's JSON: a downloaded file keeps its length and its ETag."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_file = "content-disposition" in headers or "etag" in headers
    return (kind == "application/json" or kind.endswith("+json")) and not is_file
