"""Requests to a rollout server that are made at about the same time travel in one remote call.

A call costs about a millisecond on either side, whatever it carries. An agent loop
notices nothing: it still asks for one response and is answered when that has ended.
Of many requests the first leave while the others are still being made, so that the
server is at work by then, and its answers come one call after the other, too.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from trellis_train.rollout.response_times import note_request
from trellis_train.rollout.shared_requests import Answer

#: A request waits this long for others to travel with.
GATHER_S = 0.001
#: As many requests wait for no others.
ENOUGH = 32
Request = Mapping[str, Any]
#: Batches of answers as they end, each with the place of its request.
Answers = AsyncIterator[list[Answer]]
#: Sends requests at once; the answers come later.
Send = Callable[[list[Request]], Answers]
#: A request, and where its answer is awaited.
Waiting = tuple[Request, "asyncio.Future[Any]"]


class ServerLost(RuntimeError):
    """A server ended its answers before every request was answered."""


class RequestBatcher:
    """Gathers requests to one server."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[Waiting] = []
        self._deliveries: set[asyncio.Task[None]] = set()

    async def generate(self, **request: Any) -> Any:
        """Return the response to ``request``, or raise its error."""
        loop = asyncio.get_running_loop()
        started_at = time.time()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((request, answer))
        if len(self._waiting) == ENOUGH:
            self._flush()
        elif len(self._waiting) == 1:
            loop.call_later(GATHER_S, self._flush)
        answered = await answer
        note_request(started_at, answered)
        return answered

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:  # enough of them did not wait for this
            return
        try:
            answers = self._send([request for request, _ in waiting])
        except Exception as failure:  # noqa: BLE001 - it is raised where each request was made
            _settle_all(waiting, failure)
            return
        delivery = asyncio.ensure_future(self._deliver(waiting, answers))
        self._deliveries.add(delivery)
        delivery.add_done_callback(self._deliveries.discard)

    async def _deliver(self, waiting: list[Waiting], answers: Answers) -> None:
        error: Exception = ServerLost(f"a rollout server left requests of {len(waiting)} unanswered")
        try:
            async for batch in answers:
                for place, answer in batch:
                    _settle(waiting[place][1], answer)
        except Exception as failure:  # noqa: BLE001 - it is raised where each request was made
            error = failure
        _settle_all(waiting, error)


def _settle_all(waiting: list[Waiting], error: Exception) -> None:
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

    def _send(self, requests: list[Request]) -> Answers:
        return _read(self.handle.generate_many.options(num_returns="streaming").remote(requests))


async def _read(stream: Any) -> Answers:
    async for reference in stream:
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
