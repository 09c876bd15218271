"""Middleware of a served model that lets other weights take the place of its own between two requests.

No request is answered with both: those in flight end first, those that come meanwhile wait, and then find the
model under its new name only. Behind ``serve_guard``: nobody gets here without the key.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from trellis_train.serve_guard import App, Receive, Scope, Send

logger = logging.getLogger(__name__)

#: Where weights are replaced: a POST of ``{"folder": ..., "name": ...}``.
REPLACE_PATH = "/replace_weights"
#: Requests in flight have so long to end; until then others wait, so it is far below what a client waits.
DRAIN_S = 60.0
#: Nothing was touched: the engine serves what it served.
STATUS_BUSY = 409
#: The weights may be those of both: the engine answers nothing any more.
STATUS_BROKEN = 500
#: Answered at any time: whether the server is well does not depend on its weights.
_ALWAYS = frozenset({"/health", "/metrics"})


class WeightsGate:
    """Plain ASGI."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._may_begin, self._is_idle = asyncio.Event(), asyncio.Event()
        self._may_begin.set()
        self._is_idle.set()
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request while it lasts; one that comes while weights are replaced waits."""
        if scope["type"] != "http" or scope["path"] in _ALWAYS:
            await self._app(scope, receive, send)
        elif scope["path"] == REPLACE_PATH:
            status, told = await self._replace(scope, receive)
            await _answer(send, status, told)
        else:
            await self._may_begin.wait()
            async with self._counted():
                await self._app(scope, receive, send)

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        self._in_flight += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._is_idle.set()

    async def _replace(self, scope: Scope, receive: Receive) -> tuple[int, str]:
        """Replace the weights when nobody is being answered; returns the status, and why it could not be."""
        asked = json.loads(await _read(receive))
        if not self._may_begin.is_set():
            return STATUS_BUSY, "The weights are being replaced already."
        self._may_begin.clear()
        try:
            await asyncio.wait_for(self._is_idle.wait(), DRAIN_S)
        except TimeoutError:
            self._may_begin.set()
            return STATUS_BUSY, f"Requests were still being answered after {DRAIN_S:g} s."
        state = scope["app"].state
        try:
            await take_weights(state.engine_client, asked["folder"])
        except Exception as error:  # the edge: whatever it is, nobody may be answered with what is there now
            logger.exception("the weights could not be replaced")
            return STATUS_BROKEN, str(error) or type(error).__name__
        state.openai_serving_models.base_model_paths[0].name = asked["name"]
        self._may_begin.set()
        return 200, ""


async def take_weights(engine: Any, folder: str) -> None:
    """Let an idle engine take the weights of a folder, and forget what it has cached of the old ones."""
    # Aborts what clients have left behind, and drops cached prefixes.
    await engine.pause_generation(mode="abort", clear_cache=True)
    await engine.collective_rpc("take_weights", args=(folder,))
    await engine.resume_generation()


async def _read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _answer(send: Send, status: int, told: str) -> None:
    content = json.dumps({"error": {"message": told}} if told else {}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
