"""Reads what a job's machines and steps did over time."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.jobs import repository
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Attempt
from trellis_api.jobs.timing import store
from trellis_api.jobs.timing.models import StepTime
from trellis_api.jobs.timing.schemas import AttemptSpan, JobSystemRead, StepTimes
from trellis_api.monitoring import history

#: Before and after a run, so that a short one has samples as well.
_MARGIN = timedelta(seconds=history.INTERVAL_S)


def read_system(
    session: Session,
    *,
    job_id: str,
    since: datetime | None,
    until: datetime | None,
    max_points: int,
    node: str | None,
) -> JobSystemRead:
    """What the nodes measured from the first attempt's start to the end, or to now; or in a part of that."""
    jobs.get_job(session, job_id=job_id)
    attempts = repository.list_attempts(session, job_id=job_id)
    times = store.list_times(session, job_id=job_id, at_most=max_points)
    begun = [each.started_at for each in attempts if each.started_at is not None]
    shown = JobSystemRead(
        since=None,
        until=None,
        stretch_s=None,
        nodes=[],
        attempts=_describe_attempts(attempts, times),
        step_times=_describe_times(times),
    )
    if not begun:
        return shown
    last = attempts[-1].finished_at
    found = history.read_history(
        session,
        since=since or min(begun) - _MARGIN,
        until=until or (utc_now() if last is None else last + _MARGIN),
        max_points=max_points,
        node=node,
    )
    shown.since, shown.until, shown.stretch_s = found.since, found.until, found.stretch_s
    shown.nodes = found.nodes
    return shown


def _describe_attempts(attempts: Sequence[Attempt], times: Sequence[StepTime]) -> list[AttemptSpan]:
    first: dict[int, int] = {}
    for each in times:
        first.setdefault(each.attempt, each.step)
    return [
        AttemptSpan(
            number=each.number,
            started_at=each.started_at,
            finished_at=each.finished_at,
            first_step=first.get(each.number),
        )
        for each in attempts
    ]


def _describe_times(times: Sequence[StepTime]) -> StepTimes:
    return StepTimes(
        steps=[each.step for each in times],
        at=[each.at for each in times],
        attempts=[each.attempt for each in times],
    )
