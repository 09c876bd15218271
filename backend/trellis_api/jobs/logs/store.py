"""Keeps the output of jobs as numbered lines."""

from collections.abc import Iterator, Sequence

from sqlalchemy import insert
from sqlmodel import Session, col, select
from trellis_contracts.events import LogEvent

from trellis_api.core.redaction import redact
from trellis_api.core.texts import shorten, storable
from trellis_api.jobs.models import Job, LogLine

#: A longer line is cut: progress bars and dumped tensors are no text to read.
MAX_LINE_CHARACTERS = 16_384
#: Few queries where lines come one by one, few rows in memory where they come in masses.
_STRETCH = 200


def write(session: Session, *, job: Job, attempt: int, event: LogEvent) -> tuple[int, int]:
    """Keep the lines of one event; the number of the first and how many. The caller holds the job's lock."""
    first = job.line_count + 1
    rows = [
        {
            "job_id": job.id,
            "line": line,
            "attempt": attempt,
            "stream": event.stream,
            "time": event.time,
            "text": shorten(redact(storable(text)), limit=MAX_LINE_CHARACTERS),
        }
        for line, text in enumerate(event.lines, start=first)
    ]
    if rows:
        session.connection().execute(insert(LogLine), rows)
        job.line_count += len(rows)
        session.add(job)
    return first, len(rows)


def read_after(session: Session, *, job_id: str, after: int, limit: int) -> Sequence[LogLine]:
    """Read the lines after a number, in order."""
    return session.exec(
        select(LogLine)
        .where(LogLine.job_id == job_id, LogLine.line > after)
        .order_by(col(LogLine.line))
        .limit(limit)
    ).all()


def iterate_after(session: Session, *, job_id: str, after: int, limit: int) -> Iterator[LogLine]:
    """Iterate over the lines after a number, in order and in chunks: all may not fit in memory."""
    last = after + limit
    while after < last:
        lines = read_after(session, job_id=job_id, after=after, limit=min(last - after, _STRETCH))
        if not lines:
            return
        yield from lines
        after = lines[-1].line


def read_last(session: Session, *, job: Job, limit: int) -> Sequence[LogLine]:
    """Read the newest lines, in order."""
    return read_after(session, job_id=job.id, after=max(0, job.line_count - limit), limit=limit)
