"""Requests to a rollout server that are made at about the same time travel in one remote call.

A call costs about a millisecond on either side, whatever it carries. An agent loop
notices nothing: it still asks for one response and is answered when that has ended.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

#: A request waits this long for others to travel with.
GATHER_S = 0.001
Request = Mapping[str, Any]
#: Sends requests and yields their answers, each with the place of its request, as they end.
Send = Callable[[list[Request]], AsyncIterator[list[tuple[int, Any]]]]


class ServerLost(RuntimeError):
    """A server ended its answers before every request was answered."""


class RequestBatcher:
    """Gathers requests to one server."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[tuple[Request, asyncio.Future[Any]]] = []
        self._deliveries: set[asyncio.Task[None]] = set()

    async def generate(self, **request: Any) -> Any:
        """The answer to ``request``, or the error that it met."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((request, answer))
        if len(self._waiting) == 1:
            loop.call_later(GATHER_S, self._flush)
        return await answer

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        delivery = asyncio.ensure_future(self._deliver(waiting))
        self._deliveries.add(delivery)
        delivery.add_done_callback(self._deliveries.discard)

    async def _deliver(self, waiting: list[tuple[Request, asyncio.Future[Any]]]) -> None:
        error: Exception = ServerLost(f"a rollout server left requests of {len(waiting)} unanswered")
        try:
            async for bunch in self._send([request for request, _ in waiting]):
                for place, answer in bunch:
                    _settle(waiting[place][1], answer)
        except Exception as failure:  # noqa: BLE001 - it is raised where each request was made
            error = failure
        for _, future in waiting:
            _settle(future, error)


def _settle(future: "asyncio.Future[Any]", answer: Any) -> None:
    if future.done():  # answered, or its agent loop was cancelled
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


class BatchedServer:
    """Answers ``server.generate.remote(...)`` for the handle of a server that has ``generate_many``."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.generate = _Method(RequestBatcher(self._send).generate)

    async def _send(self, requests: list[Request]) -> AsyncIterator[list[tuple[int, Any]]]:
        async for reference in self.handle.generate_many.options(num_returns="streaming").remote(requests):
            yield await reference


class _Method:
    def __init__(self, method: Callable[..., Any]) -> None:
        self.remote = method


def batch_requests(client: Any) -> None:
    """Make verl's ``LLMServerClient`` reach servers that can take many requests through a batcher."""
    acquire = client._acquire_server
    batched: dict[str, BatchedServer] = {}

    async def acquire_server(request_id: str, **extra: Any) -> tuple[str, Any]:
        server_id, handle = await acquire(request_id, **extra)
        if not hasattr(handle, "generate_many"):
            return server_id, handle
        known = batched.get(server_id)
        if known is None or known.handle != handle:  # a server that died comes back as another actor
            known = batched[server_id] = BatchedServer(handle)
        return server_id, known

    client._acquire_server = acquire_server
