"""Counts over all jobs, and what machines measured."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Text, cast
from sqlmodel import Session, col, delete, func, select
from trellis_contracts.states import JobState

from trellis_api.jobs.models import Job
from trellis_api.monitoring.models import MachineSample

#: Samples in memory while a range is read.
_AT_ONCE = 200


def count_jobs_by_state(session: Session) -> dict[JobState, int]:
    """How many jobs are in each state; 0 where there are none."""
    rows = session.exec(select(Job.state, func.count()).group_by(col(Job.state)))
    return dict.fromkeys(JobState, 0) | {JobState(state): count for state, count in rows}


def list_recent_failures(session: Session, *, limit: int) -> Sequence[Job]:
    """Failed and crashed jobs, the latest first."""
    failed = (JobState.FAILED, JobState.CRASHED)
    query = select(Job).where(col(Job.state).in_(failed))
    return session.exec(query.order_by(col(Job.finished_at).desc(), col(Job.id)).limit(limit)).all()


def find_last_sample(session: Session, *, node: str, since: datetime) -> MachineSample | None:
    """The newest sample of a node, where it is not older than ``since``."""
    query = select(MachineSample).where(MachineSample.node == node, col(MachineSample.at) >= since)
    return session.exec(query.order_by(col(MachineSample.at).desc()).limit(1)).first()


def add_sample(session: Session, *, sample: MachineSample) -> None:
    """Keep it, unless that moment of the node was measured already."""
    if session.get(MachineSample, (sample.node, sample.at)) is None:
        session.add(sample)


def iterate_figures(
    session: Session, *, since: datetime, until: datetime
) -> Iterator[tuple[str, datetime, Mapping[str, float]]]:
    """Node, moment and figures of all samples of the range, in any order."""
    query = select(MachineSample.node, MachineSample.at, MachineSample.figures)
    in_range = (col(MachineSample.at) >= since, col(MachineSample.at) <= until)
    yield from session.exec(query.where(*in_range).execution_options(yield_per=_AT_ONCE))


def iterate_looks(
    session: Session, *, since: datetime, until: datetime
) -> Iterator[tuple[str, datetime, Sequence[Mapping[str, Any]]]]:
    """Node, moment and processes of the samples that looked at processes, oldest first."""
    query = select(MachineSample.node, MachineSample.at, MachineSample.processes).where(
        col(MachineSample.at) >= since,
        col(MachineSample.at) <= until,
        cast(col(MachineSample.processes), Text) != "[]",
    )
    yield from session.exec(query.order_by(col(MachineSample.at)).execution_options(yield_per=_AT_ONCE))


def delete_samples(session: Session, *, before: datetime) -> None:
    """Forget samples that are older."""
    session.exec(delete(MachineSample).where(col(MachineSample.at) < before))
