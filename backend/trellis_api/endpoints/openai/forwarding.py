"""Hands a request on to an engine and its answer back, whole or token by token; waits for no dead engine."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
import orjson
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trellis_api.core.errors import DomainError
from trellis_api.core.openai_errors import describe_openai
from trellis_api.endpoints.errors import (
    EndpointStopped,
    EngineError,
    EngineLost,
    EngineRefused,
    EngineSilent,
)
from trellis_api.endpoints.openai.engines import Engine, Engines
from trellis_api.endpoints.openai.usage import count_request, count_usage, outcome_of
from trellis_api.endpoints.schemas import RequestOutcome

log = logging.getLogger(__name__)
Value = TypeVar("Value")

#: Between two looks at the engine's endpoint, and at whether the client is still there.
_LOOK_S = 1.0
_MAX_MESSAGE = 2000
#: Of an answer that the API itself reads: ids and text of a prompt with a million tokens.
_MAX_ANSWER_BYTES = 16 << 20
_EVENT_STREAM = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


async def refuse_gone(request: Request) -> None:
    """Raise where the client has closed its connection."""
    if await request.is_disconnected():
        raise ClientGone


class EventStream(StreamingResponse):
    """Pass on the events of an answer. However it ends, the request ends on the engine too."""

    def __init__(
        self, pieces: AsyncIterator[bytes], answer: aiohttp.ClientResponse, engines: Engines
    ) -> None:
        super().__init__(pieces, media_type="text/event-stream", headers=_EVENT_STREAM)
        self._answer, self._engines = answer, engines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. A client that leaves ends up behind this, too."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._engines.leave()
            self._answer.close()


async def forward(
    request: Request, engines: Engines, engine: Engine, *, path: str, body: dict[str, Any], shows_usage: bool
) -> Response:
    """Forward the request and return the engine's answer; an ``EventStream`` goes on after this returns."""

    async def look() -> None:
        await refuse_gone(request)
        await _require_alive(engines, engine)

    async with _explaining(engines, engine):
        answer = await _until_done(_send(engines, engine, path, body), look)
        if body.get("stream") and answer.status == HTTPStatus.OK:
            pieces = _pass_events(engines, engine, answer, path=path, shows_usage=shows_usage)
            return EventStream(pieces, answer, engines)
        async with answer:
            content = await _until_done(answer.read(), look)
    if answer.status != HTTPStatus.OK:
        error = _translate(answer.status, content)
        # One that is stopped answers what it could not finish in time as its own failure.
        raise await engines.explain_loss(engine, error) if isinstance(error, EngineError) else error
    count_usage((await run_in_threadpool(orjson.loads, content)).get("usage"))  # vectors take megabytes
    return Response(content, media_type="application/json")


async def ask(
    request: Request, engines: Engines, engine: Engine, *, path: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Query the engine at one of its own paths, on behalf of the API itself; with a body it is a POST."""

    async def look() -> None:
        await refuse_gone(request)
        await _require_alive(engines, engine)

    async with _explaining(engines, engine):
        answer = await _until_done(_send(engines, engine, path, body), look)
        async with answer:
            content = await _until_done(_read_bounded(answer), look)
    if answer.status != HTTPStatus.OK:
        raise _translate(answer.status, content)
    try:
        found = await run_in_threadpool(orjson.loads, content)
    except orjson.JSONDecodeError as error:
        raise EngineError(f"The engine's answer at {path} is no JSON.") from error
    if not isinstance(found, dict):
        raise EngineError(f"The engine's answer at {path} is no object.")
    return found


async def _read_bounded(answer: aiohttp.ClientResponse) -> bytes:
    """Read the whole answer up to a limit; a chat template decides how long the answer for a prompt is."""
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > _MAX_ANSWER_BYTES:
            raise EngineError(f"The engine's answer is longer than {_MAX_ANSWER_BYTES >> 20} MiB.")
    return bytes(content)


async def _send(
    engines: Engines, engine: Engine, path: str, body: dict[str, Any] | None
) -> aiohttp.ClientResponse:
    """Send a request; returns at the headers. Bounded as a whole: a frozen engine may not even read it."""
    headers = {"Authorization": f"Bearer {engine.key}"}
    method = "GET" if body is None else "POST"
    async with asyncio.timeout(engines.answer_s):
        return await engines.client.request(
            method, f"{engine.url}{path}", json=body, headers=headers, allow_redirects=False
        )


async def _pass_events(
    engines: Engines, engine: Engine, answer: aiohttp.ClientResponse, *, path: str, shows_usage: bool
) -> AsyncGenerator[bytes]:
    """Pass events on as they come. What breaks in the middle becomes a last event that says so."""
    outcome: RequestOutcome = "broken_off"
    watcher = asyncio.create_task(_break_when_lost(engines, engine, answer))
    events = _Events(shows_usage=shows_usage)
    try:
        async with _explaining(engines, engine):
            async for chunk in answer.content.iter_any():
                passed, error = events.take(chunk)
                if passed:
                    yield passed
                if error is not None:
                    lost = EngineLost(f"The engine failed while generating: {error}")
                    raise await engines.explain_loss(engine, lost)
        outcome = "answered"
    except DomainError as error:
        outcome = outcome_of(error)
        yield f"data: {json.dumps(describe_openai(error.status, error.code, error.message))}\n\n".encode()
    finally:
        watcher.cancel()
        count_request(path, engine.endpoint_id, outcome)


async def _break_when_lost(engines: Engines, engine: Engine, answer: aiohttp.ClientResponse) -> None:
    """Close the connection to an engine that is gone: whoever reads from it gets an error at once.

    One task a stream that wakes every second costs far less than a timer around every token.
    """
    while True:
        await asyncio.sleep(_LOOK_S)
        try:
            is_alive = await engines.check(engine)
        except Exception:  # an edge: a database that is away for a moment ends no answer
            log.exception("could not check the engine of %s", engine.endpoint_id)
            continue
        if not is_alive:
            answer.close()
            return


class _Events:
    """Events of a stream, cut from chunks that end anywhere; comments and the usage nobody asked for go."""

    def __init__(self, *, shows_usage: bool) -> None:
        self._shows_usage = shows_usage
        self._rest = self._name = b""

    def take(self, chunk: bytes) -> tuple[bytes, str | None]:
        """Return the events that the chunk completes, and the engine's error, which ends the stream."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        passed: list[bytes] = []
        for line in lines:
            if line.startswith(b"event:"):
                self._name = line.rstrip(b"\r") + b"\n"
            if not line.startswith(b"data:"):
                continue
            if line.startswith(b'data: {"error"'):
                return b"".join(passed), _read_error(line)
            if b'"usage":{' in line and not _take_usage(line, shows_usage=self._shows_usage):
                continue
            passed += [self._name, line.rstrip(b"\r"), b"\n\n"]
            self._name = b""
        return b"".join(passed), None


def _take_usage(line: bytes, *, shows_usage: bool) -> bool:
    """Count the tokens that the last event tells; whether the client is to see it."""
    event = json.loads(line.removeprefix(b"data:"))
    if event.get("choices"):
        return True
    if isinstance(event.get("response"), dict):  # the last event of /v1/responses
        event = event["response"]
    count_usage(event.get("usage"))
    return shows_usage


def _read_error(line: bytes) -> str:
    """Return the error message in an event of an engine's stream."""
    error = json.loads(line.removeprefix(b"data:"))["error"]
    return str(error.get("message") if isinstance(error, dict) else error)[:_MAX_MESSAGE]


async def _until_done(doing: Awaitable[Value], look: Callable[[], Awaitable[None]]) -> Value:
    """Wait for the result of ``doing``; give up if ``look``, called every second, raises."""
    task = asyncio.ensure_future(doing)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=_LOOK_S)
            if done:
                return task.result()
            await look()
    finally:
        task.cancel()


async def _require_alive(engines: Engines, engine: Engine) -> None:
    if not await engines.check(engine):
        raise await engines.explain_loss(engine)


@asynccontextmanager
async def _explaining(engines: Engines, engine: Engine) -> AsyncIterator[None]:
    """Turn what aiohttp says of a connection into errors of ours."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError) as error:
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
            raise EngineSilent("The engine timed out. Request fewer tokens.") from error
        log.warning("an engine was lost: %s: %s", type(error).__name__, error)
        raise await engines.explain_loss(engine) from error


def _translate(status: int, content: bytes) -> DomainError:
    """Translate an engine's error into one of ours, with the engine's message."""
    try:
        error = json.loads(content)["error"]
        message, param = str(error["message"])[:_MAX_MESSAGE], error.get("param")
    except (ValueError, KeyError, TypeError):
        message, param = f"The engine returned status {status}.", None
    if status == HTTPStatus.NOT_FOUND and param == "model":
        # Since it was looked up, a newer checkpoint has taken it over, or an adapter was unloaded.
        return EndpointStopped("The endpoint was stopped before the request reached its engine. Try again.")
    if status in {400, 404, 413, 422}:
        return EngineRefused(message, {"param": param})
    return EngineError(message, {"param": param})
