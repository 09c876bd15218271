"""The ordered record of what happened to a job, from which pages are told.

Sequence numbers are given under the lock of the job's row, which is held until the
transaction ends: whoever has read up to n has missed nothing before n, on
PostgreSQL too.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from sqlalchemy import delete, insert
from sqlmodel import Session, col, select

from trellis_api.core.columns import utc_now
from trellis_api.jobs.models import Job, JobEvent

#: Events that a reconnecting page can catch up on; behind them it reads the job anew.
KEPT_EVENTS = 20_000
_TRIM_EVERY = 2_000


def publish(session: Session, *, job: Job, kind: str, data: BaseModel | dict[str, Any]) -> None:
    """Record one event. The caller holds the job's lock."""
    publish_all(session, job=job, events=[(kind, data)])


def publish_all(
    session: Session, *, job: Job, events: Sequence[tuple[str, BaseModel | dict[str, Any]]]
) -> None:
    """Record events in their order. The caller holds the job's lock."""
    if not events:
        return
    first = job.event_count + 1
    now = utc_now()
    rows = [
        {
            "job_id": job.id,
            "sequence": sequence,
            "kind": kind,
            "payload": data.model_dump(mode="json") if isinstance(data, BaseModel) else data,
            "created_at": now,
        }
        for sequence, (kind, data) in enumerate(events, start=first)
    ]
    session.connection().execute(insert(JobEvent), rows)
    job.event_count += len(rows)
    session.add(job)
    if (first - 1) // _TRIM_EVERY != job.event_count // _TRIM_EVERY:
        _trim(session, job=job)


def list_events(session: Session, *, job_id: str, after: int, limit: int) -> Sequence[JobEvent]:
    """List the events after a position, in order."""
    return session.exec(
        select(JobEvent)
        .where(JobEvent.job_id == job_id, JobEvent.sequence > after)
        .order_by(col(JobEvent.sequence))
        .limit(limit)
    ).all()


def find_oldest_position(session: Session, *, job_id: str) -> int | None:
    """Find the sequence number of the oldest event that is kept."""
    return session.exec(
        select(JobEvent.sequence).where(JobEvent.job_id == job_id).order_by(col(JobEvent.sequence)).limit(1)
    ).first()


def _trim(session: Session, *, job: Job) -> None:
    session.exec(
        delete(JobEvent).where(
            col(JobEvent.job_id) == job.id, col(JobEvent.sequence) <= job.event_count - KEPT_EVENTS
        )
    )
