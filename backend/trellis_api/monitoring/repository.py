"""Counts over all jobs."""

from collections.abc import Sequence

from sqlmodel import Session, col, func, select
from trellis_contracts.states import JobState

from trellis_api.jobs.models import Job


def count_jobs_by_state(session: Session) -> dict[JobState, int]:
    """How many jobs are in each state; 0 where there are none."""
    rows = session.exec(select(Job.state, func.count()).group_by(col(Job.state)))
    return dict.fromkeys(JobState, 0) | {JobState(state): count for state, count in rows}


def list_recent_failures(session: Session, *, limit: int) -> Sequence[Job]:
    """Failed and crashed jobs, the latest first."""
    failed = (JobState.FAILED, JobState.CRASHED)
    query = select(Job).where(col(Job.state).in_(failed))
    return session.exec(query.order_by(col(Job.finished_at).desc(), col(Job.id)).limit(limit)).all()
