"""Finds the engine that answers a request, and starts it where none does: bounded in time and in number."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import OperationalError
from sqlmodel import Session
from trellis_contracts import tasks as task_names
from trellis_contracts.attempt import ENGINE_KEY_FILE
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.core.shared_lookups import SharedLookups
from trellis_api.core.tasks import TaskQueue
from trellis_api.endpoints import repository, service
from trellis_api.endpoints.errors import (
    EndpointFailed,
    EndpointNotReady,
    EndpointPreempted,
    EndpointStopped,
    EndpointStopping,
    EngineLost,
    TooManyRequests,
)
from trellis_api.endpoints.models import IDLE_AFTER, Endpoint
from trellis_api.endpoints.openai.names import find_target, require_kind
from trellis_api.endpoints.schemas import EndpointStart, EndpointState
from trellis_api.jobs.models import Job
from trellis_api.jobs.tried_ahead import try_templates_of

log = logging.getLogger(__name__)

_POLL_S = 0.5
#: An engine that died sooner than this after it became ready, or never did, would likely die again: requests
#: don't start it again before so much time has passed.
_BACKOFF_S = 60.0
_RETRY_S = 10
#: Of all requests that the platform takes at once, so many parts may wait for one model that is not loaded.
_WAITING_SHARE = 4
#: How often a request under way is noted, in seconds; far below the shortest idle time.
_NOTE_S = 3.0
#: For how long an engine counts as alive that was seen so; below the time between two looks of a stream.
_SEEN_S = 0.8
_CONNECT_S = 5.0
#: Below the five seconds after which an engine's server closes an idle connection.
_KEEP_OPEN_S = 3.0
#: Of an engine's job, once it has become ready.
_ALIVE = frozenset({JobState.RUNNING, JobState.STOPPING})
#: Of one that was asked to leave. Requests in flight then have seconds to end.
_STOPPED = frozenset({JobState.STOPPING, JobState.STOPPED})
#: Asks, between two looks, whether the client is still there.
StillWanted = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Engine:
    """Where a model answers, and what it wants to see."""

    endpoint_id: str
    attempt: int
    served_name: str
    url: str
    key: str
    job_id: str
    #: Of an adapter: keeps what the engine has cached for weights that had the same name before apart.
    cache_salt: str | None = None
    #: Why it can't answer requests with tools.
    tool_problem: str | None = None


@dataclass(frozen=True)
class _Unready:
    """What a look found in the place of an engine."""

    #: The endpoint, or the name of what is asked where there is none.
    waits_for: str
    explanation: str
    #: The attempt that is starting: a later look tells by it whether that has ended.
    attempt: int | None
    endpoint: str | None = None

    @property
    def where(self) -> dict[str, str] | None:
        """Details of an error: the endpoint that is not ready."""
        return {"endpoint": self.endpoint} if self.endpoint else None


class Engines:
    """The way to all engines, one for an API process."""

    def __init__(self, settings: Settings, database: Database, tasks: TaskQueue) -> None:
        self._settings, self._database, self._tasks = settings, database, tasks
        self._client: aiohttp.ClientSession | None = None
        self._open = 0
        self._waiting: Counter[str] = Counter()
        self._noted_at: dict[str, float] = {}
        #: When the engine of a job's attempt was last seen alive.
        self._seen_at: dict[tuple[str, int], float] = {}
        self._lookups = SharedLookups()

    @property
    def client(self) -> aiohttp.ClientSession:
        """Connections to engines; made at first use, in the loop that uses them.

        aiohttp's parser is written in C: a token that passes costs a quarter of what it costs with httpx.
        Engines are addressed directly: no proxy of the environment's stands between.
        """
        if self._client is None:
            timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=self.answer_s)
            connections = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_OPEN_S)
            self._client = aiohttp.ClientSession(
                connector=connections, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._client

    @property
    def answer_s(self) -> float:
        """For how long an engine may say nothing, in seconds."""
        return self._settings.endpoint_answer_s

    async def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def enter(self) -> None:
        """Count a request that begins."""
        if self._open >= self._settings.endpoint_max_requests:
            raise TooManyRequests(
                f"The platform is already handling {self._open} requests. Try again.",
                headers={"Retry-After": "1"},
            )
        self._open += 1

    def leave(self) -> None:
        """Count a request that has ended."""
        self._open -= 1

    async def find(self, name: str, still_wanted: StillWanted, *, is_embedding: bool = False) -> Engine:
        """Return the engine of a model or checkpoint, started if needed.

        Raises ``ModelUnknown``, ``WrongModelKind`` for an encoder that shall write or a writer that shall
        embed, what stands against serving it, ``EndpointFailed`` with the cause, ``EndpointStopped``, or,
        after ``TRELLIS_ENDPOINT_WAIT_S`` or where many wait for it already, ``EndpointNotReady``.
        """
        deadline = time.monotonic() + self._settings.endpoint_wait_s
        found = await self._try(name, None, is_embedding)
        if isinstance(found, Engine):
            return found
        with self._waiting_for(found):
            while time.monotonic() < deadline:
                await still_wanted()
                await asyncio.sleep(_POLL_S)
                found = await self._try(name, found.attempt, is_embedding)
                if isinstance(found, Engine):
                    return found
            raise EndpointNotReady(found.explanation, found.where, headers={"Retry-After": str(_RETRY_S)})

    async def _try(self, name: str, attempt: int | None, is_embedding: bool) -> Engine | _Unready:
        found: tuple[Endpoint, Job, Engine | None]
        try:
            found = await self._lookups.get(self._look, name, attempt, is_embedding)
        except EndpointStopping as error:  # the engine that an adapter is to share: it starts anew then
            return _Unready(name, error.message, attempt)
        row, job, engine = found
        if engine is not None:
            return engine
        state = service.state_of(row, job)
        attempt = job.attempt if state is EndpointState.STARTING else attempt
        return _Unready(row.id, _explain_waiting(self._settings, row, job, state), attempt, row.id)

    @contextmanager
    def _waiting_for(self, found: _Unready) -> Iterator[None]:
        """Count a request that waits for a model; those for one leave room for all others."""
        most = max(1, self._settings.endpoint_max_requests // _WAITING_SHARE)
        if self._waiting[found.waits_for] >= most:
            raise EndpointNotReady(
                f"{found.explanation} {most} requests are waiting for it already.",
                found.where,
                headers={"Retry-After": str(_RETRY_S)},
            )
        self._waiting[found.waits_for] += 1
        try:
            yield
        finally:
            self._waiting[found.waits_for] -= 1
            if not self._waiting[found.waits_for]:
                del self._waiting[found.waits_for]

    async def check(self, engine: Engine) -> bool:
        """Note that a request is under way; whether the engine is still the endpoint's.

        Many streams of one engine are one look at the database.
        """
        now, run = time.monotonic(), (engine.job_id, engine.attempt)
        is_noted = now - self._noted_at.get(engine.endpoint_id, -_NOTE_S) < _NOTE_S
        if is_noted and now - self._seen_at.get(run, -_SEEN_S) < _SEEN_S:
            return True
        is_alive: bool = await self._lookups.get(self._check, engine)
        return is_alive

    async def explain_loss(self, engine: Engine, otherwise: DomainError | None = None) -> DomainError:
        """Return the error for a request whose engine is gone: that it was stopped, or else ``otherwise``."""
        return await run_in_threadpool(self._explain_loss, engine, otherwise)

    def _explain_loss(self, engine: Engine, otherwise: DomainError | None) -> DomainError:
        with self._database.read() as session:
            job = session.get(Job, engine.job_id, populate_existing=True)
            if job is not None and job.attempt == engine.attempt and job.state in _STOPPED:
                if job.cause == service.PREEMPTED:
                    return _describe_preemption(engine.served_name, job, endpoint_id=engine.endpoint_id)
                return EndpointStopped(
                    f"The endpoint for '{engine.served_name}' was stopped before the response was finished."
                )
        return otherwise or EngineLost("The engine exited while handling the request. Try again.")

    def _look(
        self, name: str, asked_attempt: int | None, is_embedding: bool
    ) -> tuple[Endpoint, Job, Engine | None]:
        """Look up the endpoint, with its engine if that answers; start it if it has stopped."""
        row, job = self._find_or_start(name, asked_attempt, is_embedding)
        is_ready = service.state_of(row, job) is EndpointState.READY
        return row, job, self._describe(row, job) if is_ready else None

    def _find_or_start(
        self, name: str, asked_attempt: int | None, is_embedding: bool
    ) -> tuple[Endpoint, Job]:
        with self._database.read() as session:
            target = find_target(session, name)
            require_kind(session, target, name, is_embedding=is_embedding)
            pair = service.find_of_target(session, target)
            if pair is not None and service.state_of(*pair) is EndpointState.FAILED:
                engine = repository.find_by_job(session, job_id=pair[1].id) or pair[0]
                _refuse_restart(engine, pair[1], name=name, asked_attempt=asked_attempt)
        if pair is not None:
            state = service.state_of(*pair)
            if state is EndpointState.STOPPED and pair[1].attempt == asked_attempt:
                if pair[1].cause == service.PREEMPTED:
                    raise _describe_preemption(name, pair[1], endpoint_id=pair[0].id)
                raise EndpointStopped(
                    f"The endpoint for '{name}' was stopped while it was loading.", {"endpoint": pair[0].id}
                )
            if state not in {EndpointState.STOPPED, EndpointState.FAILED}:
                return pair
        with self._database.read() as session:
            target = find_target(session, name)
        try_templates_of(self._database.read, self._settings, target.model_dump())
        with self._database.write() as session:
            pair = self._start(session, name)
        self._tasks.send(task_names.LAUNCH_QUEUED)
        return pair

    def _start(self, session: Session, name: str) -> tuple[Endpoint, Job]:
        target = find_target(session, name)
        existing = service.find_of_target(session, target)
        # One that was set up by a person is revived as it was.
        request = EndpointStart()
        if existing is not None:
            if service.state_of(*existing) is EndpointState.STOPPING:
                return existing
            request = service.as_last_asked(existing[0])
        return service.start(session, self._settings, target=target, request=request)

    def _describe(self, row: Endpoint, job: Job) -> Engine | None:
        """Describe the endpoint's engine; None if the endpoint has ended since it was looked up."""
        path = self._settings.attempt_dir(job.id, job.attempt) / ENGINE_KEY_FILE
        try:
            key = path.read_text()
        except FileNotFoundError:
            return None
        host = f"[{row.host}]" if ":" in (row.host or "") else row.host
        self._note_use(row.id)
        return Engine(
            endpoint_id=row.id,
            attempt=job.attempt,
            served_name=row.name,
            url=f"http://{host}:{row.port}",
            key=key,
            job_id=job.id,
            cache_salt=row.load_id,
            tool_problem=row.tool_problem,
        )

    def _check(self, engine: Engine) -> bool:
        with self._database.read() as session:
            job = session.get(Job, engine.job_id, populate_existing=True)
            # One that is stopping lets requests in flight end, and so does one that unloads an adapter.
            is_alive = job is not None and job.attempt == engine.attempt and job.state in _ALIVE
        if is_alive:
            self._seen_at[engine.job_id, engine.attempt] = time.monotonic()
        self._note_use(engine.endpoint_id)
        return is_alive

    def _note_use(self, endpoint_id: str) -> None:
        """Write down that a request is under way, now and then: each is a transaction of its own."""
        now = time.monotonic()
        if now - self._noted_at.get(endpoint_id, -_NOTE_S) >= _NOTE_S:
            self._noted_at[endpoint_id] = now
            try:
                with self._database.write() as session:
                    repository.note_use(session, endpoint_id=endpoint_id)
            except OperationalError as error:
                # Bookkeeping: no answer is given up for it, and the next look notes the same.
                log.warning("the use of %s was not noted: %s", endpoint_id, error.orig)


def _refuse_restart(engine: Endpoint, job: Job, *, name: str, asked_attempt: int | None) -> None:
    """Raise ``EndpointFailed`` where a failed engine, that of ``job``, should not be started again yet.

    One that failed while this request waited for it has had its try. One that has answered for a minute or
    longer works as such, and is started again at once.
    """
    wait_s = _remaining_backoff_s(engine, job)
    if wait_s <= 0 and job.attempt != asked_attempt:
        return
    raise EndpointFailed(
        f"Model '{name}' can't be served: {job.reason or 'no reason given'}",
        {"endpoint": engine.id, "cause": job.cause},
        headers={"Retry-After": str(max(math.ceil(wait_s), 1))},
    )


def _remaining_backoff_s(engine: Endpoint, job: Job) -> float:
    if job.finished_at is None:
        return 0.0
    ready_s = 0.0
    if engine.ready_at is not None and engine.ready_attempt == job.attempt:
        ready_s = (job.finished_at - engine.ready_at).total_seconds()
    return _BACKOFF_S - ready_s - (utc_now() - job.finished_at).total_seconds()


def _describe_preemption(name: str, job: Job, *, endpoint_id: str) -> EndpointPreempted:
    return EndpointPreempted(
        f"The endpoint for '{name}' was stopped. {job.reason or ''} The next request starts it again when "
        "a slot is free.",
        {"endpoint": endpoint_id},
        headers={"Retry-After": str(_RETRY_S)},
    )


def _explain_waiting(settings: Settings, row: Endpoint, job: Job, state: EndpointState) -> str:
    if state is EndpointState.STOPPING:
        why = f" {job.reason}" if job.cause == service.PREEMPTED and job.reason else ""
        return f"The endpoint for '{row.name}' is stopping.{why} Retry to restart it."
    if job.launched_at is None:
        room = "a slot is free"
        if not job.gpus:
            room = f"fewer than {settings.max_endpoints} endpoints are running (TRELLIS_MAX_ENDPOINTS)"
        if settings.endpoint_preemption != "off":
            room += f", or an endpoint had no request for {IDLE_AFTER.seconds} s"
        return f"Model '{row.name}' is queued. It starts when {room}. Try again later."
    return f"Model '{row.name}' is loading. Try again shortly."
