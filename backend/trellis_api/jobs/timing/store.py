"""Keeps when steps ended and what they consisted of; a step that runs again replaces what was there."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import insert
from sqlmodel import Session, col, delete, func, select
from trellis_contracts.events import TimelineEvent

from trellis_api.core.texts import storable_tree
from trellis_api.jobs.timing.models import StepTime, StepTimeline

#: Timelines of a job that are kept; our trainers tell of fewer.
MAX_TIMELINES = 400
#: (step, seconds since 1970).
Moment = tuple[int, float]


def write_times(session: Session, *, job_id: str, attempt: int, times: Sequence[Moment]) -> None:
    """Note when steps were measured first by this attempt. The caller holds the job's lock.

    What belongs to a step may be reported later, with its checkpoint.
    """
    first: dict[int, float] = {}
    for step, at in times:
        first.setdefault(step, at)
    if not first:
        return
    is_asked = (col(StepTime.job_id) == job_id, col(StepTime.step).in_(first))
    session.exec(delete(StepTime).where(*is_asked, col(StepTime.attempt) != attempt))
    known = set(session.exec(select(StepTime.step).where(*is_asked)))
    rows = [
        {"job_id": job_id, "step": step, "attempt": attempt, "at": datetime.fromtimestamp(at, UTC)}
        for step, at in first.items()
        if step not in known
    ]
    if rows:
        session.connection().execute(insert(StepTime), rows)


def write_timeline(session: Session, *, job_id: str, attempt: int, event: TimelineEvent) -> None:
    """Keep the timeline of a step, unless the job has too many. The caller holds the job's lock."""
    is_here = (col(StepTimeline.job_id) == job_id, col(StepTimeline.step) == event.step)
    session.exec(delete(StepTimeline).where(*is_here))
    if session.exec(select(func.count()).where(StepTimeline.job_id == job_id)).one() >= MAX_TIMELINES:
        return
    row = {
        "job_id": job_id,
        "step": event.step,
        "attempt": attempt,
        "timeline": storable_tree(event.model_dump(mode="json")),
    }
    session.connection().execute(insert(StepTimeline), [row])


def truncate(session: Session, *, job_id: str, last_step: int) -> None:
    """Forget the steps behind ``last_step``."""
    session.exec(delete(StepTime).where(col(StepTime.job_id) == job_id, col(StepTime.step) > last_step))
    is_behind = (col(StepTimeline.job_id) == job_id, col(StepTimeline.step) > last_step)
    session.exec(delete(StepTimeline).where(*is_behind))


def list_times(session: Session, *, job_id: str, at_most: int) -> Sequence[StepTime]:
    """List when steps were measured, evenly thinned out, including the first and the last step."""
    own = select(func.min(StepTime.step), func.max(StepTime.step)).where(StepTime.job_id == job_id)
    first, last = session.exec(own).one()
    if first is None or last is None:
        return []
    stride = max(1, -(-(last - first + 1) // at_most))
    is_kept = ((col(StepTime.step) - first) % stride == 0) | (col(StepTime.step) == last)
    query = select(StepTime).where(StepTime.job_id == job_id, is_kept)
    return session.exec(query.order_by(col(StepTime.step))).all()


def list_timeline_steps(session: Session, *, job_id: str) -> Sequence[int]:
    """List the steps that have a timeline, in order."""
    query = select(StepTimeline.step).where(StepTimeline.job_id == job_id)
    return session.exec(query.order_by(col(StepTimeline.step))).all()


def find_timeline(session: Session, *, job_id: str, step: int | None) -> StepTimeline | None:
    """Return the timeline of the step that is nearest to ``step``; None: the newest."""
    query = select(StepTimeline).where(StepTimeline.job_id == job_id)
    if step is None:
        return session.exec(query.order_by(col(StepTimeline.step).desc()).limit(1)).first()
    distance = func.abs(col(StepTimeline.step) - step)
    return session.exec(query.order_by(distance, col(StepTimeline.step)).limit(1)).first()
