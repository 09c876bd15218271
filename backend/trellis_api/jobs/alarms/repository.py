"""Queries for alarms."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Select, update
from sqlmodel import Session, col, func, select
from trellis_contracts.states import ACTIVE

from trellis_api.core.columns import utc_now
from trellis_api.jobs.alarms.models import Alarm
from trellis_api.jobs.models import Attempt, Job


def map_alarms(session: Session, *, job_id: str, attempt: int) -> dict[str, Alarm]:
    """Return the alarms of one attempt by code, active or not."""
    statement = select(Alarm).where(Alarm.job_id == job_id, Alarm.attempt == attempt)
    return {alarm.code: alarm for alarm in session.exec(statement)}


def find_alarm(session: Session, *, job_id: str, attempt: int, code: str) -> Alarm | None:
    """Find one alarm, or None."""
    return session.get(Alarm, (job_id, attempt, code))


def list_alarms(session: Session, *, job_id: str) -> Sequence[Alarm]:
    """List all alarms of a job: active ones first, then the newest attempt's."""
    return session.exec(
        select(Alarm)
        .where(Alarm.job_id == job_id)
        .order_by(
            col(Alarm.is_active).desc(), col(Alarm.attempt).desc(), col(Alarm.raised_at), col(Alarm.code)
        )
    ).all()


def list_active(session: Session, *, job_ids: Iterable[str]) -> Sequence[Alarm]:
    """List the active alarms of some jobs."""
    wanted = list(job_ids)
    if not wanted:
        return []
    statement = select(Alarm).where(col(Alarm.is_active), col(Alarm.job_id).in_(wanted))
    return session.exec(statement.order_by(col(Alarm.raised_at), col(Alarm.code))).all()


def select_jobs_with_alarms() -> Select[str]:
    """Select the ids of the jobs that have an active alarm."""
    return select(Alarm.job_id).where(col(Alarm.is_active))


def list_jobs_with(session: Session, *, code: str) -> Sequence[str]:
    """List the ids of the jobs that have an active alarm of a code."""
    return session.exec(select(Alarm.job_id).where(Alarm.code == code, col(Alarm.is_active))).all()


def list_active_of_unfinished(session: Session, *, limit: int) -> list[tuple[Alarm, str]]:
    """List active alarms of unfinished jobs with the job's name: critical first, then the newest."""
    query = select(Alarm, Job.name).join(Job, col(Job.id) == col(Alarm.job_id))
    query = query.where(col(Alarm.is_active), col(Job.state).in_(ACTIVE))
    order = (col(Alarm.severity), col(Alarm.raised_at).desc(), col(Alarm.job_id), col(Alarm.code))
    return list(session.exec(query.order_by(*order).limit(limit)).all())


def count_active_by_code(session: Session) -> dict[tuple[str, str], int]:
    """Count the active alarms of jobs that have not ended, by code and severity."""
    rows = session.exec(
        select(Alarm.code, Alarm.severity, func.count())
        .join(Job, col(Job.id) == col(Alarm.job_id))
        .where(col(Alarm.is_active), col(Job.state).in_(ACTIVE))
        .group_by(col(Alarm.code), col(Alarm.severity))
    )
    return {(code, severity): count for code, severity, count in rows}


def clear_all(session: Session, *, job_id: str) -> None:
    """End every alarm of a job."""
    session.exec(
        update(Alarm)
        .where(col(Alarm.job_id) == job_id, col(Alarm.is_active))
        .values(is_active=False, cleared_at=utc_now())
    )


def list_earlier_attempts(session: Session, *, job_id: str, number: int) -> Sequence[Attempt]:
    """List the attempts of a job before one, the latest first."""
    earlier = select(Attempt).where(Attempt.job_id == job_id, col(Attempt.number) < number)
    return session.exec(earlier.order_by(col(Attempt.number).desc())).all()
