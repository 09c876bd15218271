"""Counts over all jobs, and what machines measured."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, cast
from sqlmodel import Session, col, delete, func, select
from trellis_contracts.states import JobState

from trellis_api.jobs.models import TRAIN, Job
from trellis_api.monitoring.models import MachineSample

#: Samples in memory while a range is read.
_AT_ONCE = 200


def count_jobs_by_state(session: Session) -> dict[JobState, int]:
    """Count the jobs in each state; 0 if there are none."""
    rows = session.exec(select(Job.state, func.count()).group_by(col(Job.state)))
    return dict.fromkeys(JobState, 0) | {JobState(state): count for state, count in rows}


def list_recent_failures(session: Session, *, limit: int) -> Sequence[Job]:
    """List failed and crashed jobs, latest first."""
    failed = (JobState.FAILED, JobState.CRASHED)
    query = select(Job).where(col(Job.state).in_(failed))
    return session.exec(query.order_by(col(Job.finished_at).desc(), col(Job.id)).limit(limit)).all()


def list_recently_finished(session: Session, *, limit: int) -> Sequence[Job]:
    """List succeeded and stopped trainings, latest first."""
    ended = (JobState.SUCCEEDED, JobState.STOPPED)
    # One that was stopped before it was launched has nothing to show.
    query = select(Job).where(Job.kind == TRAIN, col(Job.state).in_(ended), col(Job.started_at).is_not(None))
    return session.exec(query.order_by(col(Job.finished_at).desc(), col(Job.id)).limit(limit)).all()


def find_last_sample(session: Session, *, node: str, since: datetime) -> MachineSample | None:
    """Return the newest sample of a node, if it is not older than ``since``."""
    query = select(MachineSample).where(MachineSample.node == node, col(MachineSample.at) >= since)
    return session.exec(query.order_by(col(MachineSample.at).desc()).limit(1)).first()


def add_sample(session: Session, *, sample: MachineSample) -> None:
    """Keep it, unless that moment of the node was measured already."""
    if session.get(MachineSample, (sample.node, sample.at)) is None:
        session.add(sample)


def iterate_figures(
    session: Session,
    *,
    since: datetime,
    until: datetime,
    moments: Sequence[datetime] | None = None,
    node: str | None = None,
) -> Iterator[tuple[str, datetime, Mapping[str, float]]]:
    """Iterate over node, time and figures of the range's samples, or of some times in it, in any order."""
    query = select(MachineSample.node, MachineSample.at, MachineSample.figures)
    query = query.where(*_is_read(since, until, moments))
    if node is not None:
        query = query.where(MachineSample.node == node)
    yield from session.exec(query.execution_options(yield_per=_AT_ONCE))


def iterate_looks(
    session: Session, *, since: datetime, until: datetime, moments: Sequence[datetime] | None = None
) -> Iterator[tuple[str, datetime, Sequence[Mapping[str, Any]]]]:
    """Iterate over node, time and processes of the samples that have processes, oldest first."""
    query = select(MachineSample.node, MachineSample.at, MachineSample.processes).where(
        *_is_read(since, until, moments), cast(col(MachineSample.processes), Text) != "[]"
    )
    yield from session.exec(query.order_by(col(MachineSample.at)).execution_options(yield_per=_AT_ONCE))


def _is_read(
    since: datetime, until: datetime, moments: Sequence[datetime] | None
) -> Sequence[ColumnElement[bool]]:
    """Build the condition for a range, or for single times in it: both use the index on time."""
    if moments is not None:
        return [col(MachineSample.at).in_(moments)]
    return [col(MachineSample.at) >= since, col(MachineSample.at) <= until]


def find_job_names(session: Session, *, ids: Collection[str]) -> dict[str, str]:
    """Map ids to the names of those jobs that exist."""
    if not ids:
        return {}
    return dict(session.exec(select(Job.id, Job.name).where(col(Job.id).in_(ids))).all())


def delete_samples(session: Session, *, before: datetime) -> None:
    """Forget samples that are older."""
    session.exec(delete(MachineSample).where(col(MachineSample.at) < before))
