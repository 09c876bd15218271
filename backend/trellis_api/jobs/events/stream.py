"""Tells pages what happens to a job, as server-sent events.

One poller a process looks at the counters of the watched jobs, with one small query for
all of them, and wakes those that have news; with nobody watching it rests.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import orjson
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col, select

from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.jobs.errors import JobNotFound
from trellis_api.jobs.events import service as events
from trellis_api.jobs.events.schemas import LogsPrinted, StreamReset
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.models import Job, JobEvent, LogLine
from trellis_api.jobs.results import present_line

log = logging.getLogger(__name__)
#: Proxies and browsers give up on a connection that says nothing.
KEEP_ALIVE_S = 15.0
PAGE_SIZE = 500
RETRY_MS = 1000


class _Watcher:
    """One connection: the job it follows, and the bell that is rung when there is news."""

    def __init__(self, job_id: str, position: int) -> None:
        self.job_id = job_id
        self.position = position
        self.bell = asyncio.Event()
        self.is_gone = False


class EventHub:
    """Rings the bells of all connections of this process."""

    def __init__(self, database: Database, *, poll_interval_s: float) -> None:
        self._database = database
        self._poll_interval_s = poll_interval_s
        self._watchers: set[_Watcher] = set()
        self._poller: asyncio.Task[None] | None = None

    def resolve_position(self, job_id: str, asked: int | None) -> int | None:
        """Resolve where to begin: as requested, else now; None if the requested event isn't kept any more."""
        with self._database.read() as session:
            job = session.get(Job, job_id)
            if job is None:
                raise JobNotFound(job_id)
            if asked is None:
                return job.event_count
            oldest = events.find_oldest_position(session, job_id=job_id)
            is_kept = asked == job.event_count or (
                oldest is not None and oldest - 1 <= asked <= job.event_count
            )
            return asked if is_kept else None

    @contextmanager
    def watch(self, job_id: str, position: int) -> Iterator[_Watcher]:
        """Follow a job as long as the block lasts."""
        watcher = _Watcher(job_id, position)
        self._watchers.add(watcher)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    async def load(self, job_id: str, after: int) -> list[tuple[int, str, bytes]]:
        """Load the next events: sequence number, name and data."""
        return await run_in_threadpool(self._load, job_id, after)

    async def close(self) -> None:
        """End all streams; browsers connect again."""
        for watcher in self._watchers:
            watcher.is_gone = True
            watcher.bell.set()
        if self._poller is not None:
            self._poller.cancel()

    async def _poll(self) -> None:
        while self._watchers:
            await asyncio.sleep(self._poll_interval_s)
            watched = {watcher.job_id for watcher in self._watchers}
            try:
                counts = await run_in_threadpool(self._read_counts, watched)
            except SQLAlchemyError as error:
                log.warning("cannot look for events, trying again: %s", error)
                continue
            for watcher in self._watchers:
                count = counts.get(watcher.job_id)
                watcher.is_gone = watcher.is_gone or (count is None and watcher.job_id in watched)
                if watcher.is_gone or (count is not None and count > watcher.position):
                    watcher.bell.set()

    def _read_counts(self, job_ids: set[str]) -> dict[str, int]:
        with self._database.read() as session:
            rows = session.exec(select(Job.id, Job.event_count).where(col(Job.id).in_(job_ids)))
            return dict(rows.all())

    def _load(self, job_id: str, after: int) -> list[tuple[int, str, bytes]]:
        with self._database.read() as session:
            rows = events.list_events(session, job_id=job_id, after=after, limit=PAGE_SIZE)
            lines = _read_lines(session, job_id, rows)
            return [(row.sequence, row.kind, _encode(row, lines)) for row in rows]


async def stream_events(hub: EventHub, *, job_id: str, position: int | None) -> AsyncIterator[bytes]:
    """Stream the events of a job after a position; ends only when the job is deleted."""
    yield f"retry: {RETRY_MS}\n\n".encode()
    if position is None:
        position = await run_in_threadpool(hub.resolve_position, job_id, None) or 0
        yield format_event(position, "reset", StreamReset(at=utc_now()).model_dump_json().encode())
    with hub.watch(job_id, position) as watcher:
        while not watcher.is_gone:
            watcher.bell.clear()
            news = await hub.load(job_id, watcher.position)
            if news:
                yield b"".join(format_event(*event) for event in news)
                watcher.position = news[-1][0]
                continue
            try:
                await asyncio.wait_for(watcher.bell.wait(), timeout=KEEP_ALIVE_S)
            except TimeoutError:
                yield b": still here\n\n"


def format_event(sequence: int, name: str, data: bytes) -> bytes:
    """Format one event for the wire; the data is JSON and thus one line."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (sequence, name.encode(), data)


def _read_lines(session: Session, job_id: str, page: Sequence[JobEvent]) -> Iterator[LogLine]:
    """Read the lines of a page's events.

    They are contiguous: events are recorded in the order of their lines.
    """
    logs = [event.payload for event in page if event.kind == "logs"]
    if not logs:
        return iter(())
    after, last = logs[0]["first"] - 1, logs[-1]["first"] + logs[-1]["count"] - 1
    return log_store.iterate_after(session, job_id=job_id, after=after, limit=last - after)


def _encode(event: JobEvent, lines: Iterator[LogLine]) -> bytes:
    data: Any = event.payload
    if event.kind == "logs":
        # The record names the lines; their text is kept once.
        printed = [present_line(line) for line in islice(lines, data["count"])]
        data = LogsPrinted(lines=printed).model_dump(mode="json")
    return orjson.dumps(data)
