"""Middleware of a served model: nothing but ``/health`` is answered without the key."""

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

_KEY_VARIABLE = "VLLM_API_KEY"
_OPEN = "/health"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class RequireKey:
    """Plain ASGI. vLLM's own check leaves out paths that answer prompts, too: ``/invocations``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._expected = f"Bearer {os.environ[_KEY_VARIABLE]}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the start and end of the server through, and requests that bear the key."""
        if scope["type"] == "lifespan" or scope.get("path") == _OPEN or self._has_key(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:  # a WebSocket is refused by closing it before it opens
            await send({"type": "websocket.close", "code": 1008})

    def _has_key(self, scope: Scope) -> bool:
        sent = dict(scope.get("headers", [])).get(b"authorization", b"")
        return hmac.compare_digest(sent, self._expected)
