"""The queue as people see it: launch order with expected starts, and moving a job within it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.settings import Settings
from trellis_api.endpoints import preemption
from trellis_api.jobs import presentation, repository, service
from trellis_api.jobs.errors import CannotMoveBefore, JobNotQueued
from trellis_api.jobs.forecast import service as forecast
from trellis_api.jobs.models import EVALUATE, TRAIN, Job
from trellis_api.jobs.queue.schemas import BlockingEndpoint, JobQueue, QueuedJob

_LISTED_JOBS = 200
_APART = timedelta(seconds=1)


def read(session: Session, settings: Settings) -> JobQueue:
    """Read the queued jobs in launch order, each with its expected start."""
    queued = repository.list_queued(session)
    others = repository.map_queued_for_other_platform(session, platform=settings.resolved_platform)
    launchable = [job for job in queued if job.id not in others]
    starts = forecast.list_starts(session, settings, queued=launchable)
    shown = presentation.present_all(session, jobs=queued[:_LISTED_JOBS])
    used_slots = repository.count_held_slots(session)
    blocking = _find_blocking(session, settings, queued=launchable, free=settings.total_slots - used_slots)
    return JobQueue(
        items=[
            QueuedJob(job=job, start=starts.get(job.id), blocking_endpoints=blocking.get(job.id, []))
            for job in shown
        ],
        total=len(queued),
        used_slots=used_slots,
        total_slots=settings.total_slots,
    )


def move(session: Session, *, job_id: str, before: str | None) -> Job:
    """Let a queued job start before another, or behind all; it takes a priority that fits there.

    Raises ``JobNotQueued``, and ``CannotMoveBefore`` for a place that is gone or never its own.
    """
    repository.lock_admission(session)
    job = service.get_locked_job(session, job_id=job_id)
    if job.state != JobState.QUEUED:
        raise JobNotQueued(
            f"The job is {job.state.value}; only queued jobs can be moved.", {"state": job.state.value}
        )
    # Evaluations stand behind all other jobs: each kind is in an order of its own.
    others = [
        each
        for each in repository.list_queued(session)
        if each.id != job.id and (each.kind == EVALUATE) == (job.kind == EVALUATE)
    ]
    _place(job, others, _find_place(others, job=job, before=before))
    session.add_all([job, *others])
    service.announce(session, job=job)
    session.flush()
    return job


def _find_blocking(
    session: Session, settings: Settings, *, queued: Sequence[Job], free: int
) -> dict[str, list[BlockingEndpoint]]:
    """Find the endpoints whose slots the first job in line needs, if it is a training that doesn't fit."""
    first = next((job for job in queued if job.gpus), None)
    if first is None or first.kind != TRAIN or first.gpus <= free:
        return {}
    return {
        first.id: [
            BlockingEndpoint(
                id=each.row.id,
                name=each.row.name,
                slots=each.job.gpus,
                outlook=each.outlook(settings.endpoint_preemption, priority=first.priority),
            )
            for each in preemption.list_slot_holders(session)
        ]
    }


def _find_place(others: Sequence[Job], *, job: Job, before: str | None) -> int:
    if before is None:
        return len(others)
    place = next((place for place, each in enumerate(others) if each.id == before), None)
    if place is None:
        raise CannotMoveBefore(
            "That job isn't in this part of the queue. Evaluations start after all other jobs."
            if job.kind == EVALUATE
            else "That job is no longer queued, or is an evaluation, which starts after all other jobs."
        )
    return place


def _place(job: Job, others: Sequence[Job], place: int) -> None:
    """Put a job in front of ``others[place]``, with the nearest priority to its own that holds it there."""
    above = others[place - 1] if place > 0 else None
    below = others[place] if place < len(others) else None
    if above is not None:
        job.priority = min(job.priority, above.priority)
    if below is not None:
        job.priority = max(job.priority, below.priority)
    is_level_above = above is not None and above.priority == job.priority
    is_level_below = below is not None and below.priority == job.priority
    if above is not None and is_level_above and below is not None and is_level_below:
        first, next_one = _stands_at(above), _stands_at(below)
        job.ordered_at = first + (next_one - first) / 2
        if not first < job.ordered_at < next_one:
            _spread([*others[:place], job, *others[place:]], priority=job.priority)
    elif above is not None and is_level_above:
        job.ordered_at = max(_stands_at(above) + _APART, job.queued_at)
    elif below is not None and is_level_below:
        job.ordered_at = _stands_at(below) - _APART
    else:
        job.ordered_at = None


def _spread(jobs: Sequence[Job], *, priority: int) -> None:
    """Let the jobs of a priority stand apart again, in this order."""
    level = [each for each in jobs if each.priority == priority]
    begin = _stands_at(level[0])
    for place, each in enumerate(level):
        each.ordered_at = begin + place * _APART


def _stands_at(job: Job) -> datetime:
    return job.ordered_at or job.queued_at
