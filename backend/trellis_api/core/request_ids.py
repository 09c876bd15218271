"""Gives requests under /v1 an ID: clients of OpenAI's read it from the answer, engines use it in theirs."""

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trellis_api.core.ids import new_id
from trellis_api.core.openai_errors import is_openai

HEADER = "X-Request-Id"
_STATE = "request_id"


class RequestIds:
    """Plain ASGI, so that streams pass through untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or not is_openai(scope["path"]):
            await self._app(scope, receive, send)
            return
        request_id = scope.setdefault("state", {})[_STATE] = new_id("req")

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        await self._app(scope, receive, send_with_id)


def read_request_id(request: Request) -> str:
    """Return the ID of a request under /v1."""
    return str(request.scope["state"][_STATE])
