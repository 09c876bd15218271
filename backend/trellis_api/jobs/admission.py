"""Whose turn it is: which queued job is launched next, and which evaluations make room for a training.

Exports need no slot and stand in a line of their own. Evaluations stand back behind trainings: on a CPU they
take no slot and only some run at once; on GPUs they take slots that no training waits for, and give them
back when one does: they are stopped and queued again, and go on where they were. Endpoints stand in line with
trainings where they take slots; on a CPU they take none, and only some run at once.
"""

from collections.abc import Sequence

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.benchmarks.repository import list_installing
from trellis_api.datasets.repository import list_ids_being_made
from trellis_api.evaluations import repository as evaluations
from trellis_api.evaluations import service as evaluation_service
from trellis_api.jobs import repository
from trellis_api.jobs.models import EVALUATE, EXPORT, SERVE, Job
from trellis_api.jobs.service import Claim, claim_for_launch


def claim_next(
    session: Session,
    *,
    total_slots: int,
    max_exports: int,
    max_evaluations: int = 1,
    max_endpoints: int = 1,
) -> Claim | None:
    """Take the next job to launch, or None when nothing is queued or the next one has no room.

    The first in line is waited for: smaller jobs do not overtake it, or a large one
    would wait for ever. A job whose rows or benchmarks are still being brought lets others pass.
    Call it again, in a new transaction, until it returns None.
    """
    repository.lock_admission(session)
    free = total_slots - repository.count_held_slots(session)
    free_exports = max_exports - repository.count_running_exports(session)
    free_evaluations = max_evaluations - repository.count_running_evaluations(session)
    free_endpoints = max_endpoints - repository.count_running_endpoints(session)
    queued = repository.list_queued(session)
    being_made = list_ids_being_made(session) if queued else set()
    waits_for_files = _find_waiting_for_files(session, queued)
    for waiting in queued:
        if waiting.id in waits_for_files or {waiting.dataset_id, waiting.validation_dataset_id} & being_made:
            continue
        if waiting.kind == EXPORT and free_exports <= 0:
            continue
        if waiting.kind == EVALUATE and not waiting.gpus and free_evaluations <= 0:
            continue
        if waiting.kind == SERVE and not waiting.gpus and free_endpoints <= 0:
            continue
        if waiting.gpus > free and waiting.gpus:
            if waiting.kind != EVALUATE and free >= 0:
                _make_room(session, needed=waiting.gpus - free)
            free = -1  # whoever comes behind it waits too
            continue
        claim = claim_for_launch(session, job_id=waiting.id)
        if claim is not None:
            return claim
    return None


def _find_waiting_for_files(session: Session, queued: Sequence[Job]) -> set[str]:
    """Queued evaluations whose benchmarks are on their way."""
    asked = [job for job in queued if job.kind == EVALUATE]
    coming = set(list_installing(session)) if asked else set()
    if not coming:
        return set()
    waiting = evaluations.map_by_job(session, job_ids=[job.id for job in asked])
    return {job_id for job_id, row in waiting.items() if coming & set(row.benchmark_names)}


def _make_room(session: Session, *, needed: int) -> None:
    """Stop evaluations that hold slots, the newest first, where the slots of all of them are enough."""
    holding = [job for job in repository.list_holding_slots(session) if job.kind == EVALUATE and job.gpus]
    needed -= sum(job.gpus for job in holding if job.state == JobState.STOPPING)
    running = [job for job in holding if job.state != JobState.STOPPING]
    if needed <= 0 or sum(job.gpus for job in running) < needed:
        return
    for job in reversed(running):
        if needed > 0:
            evaluation_service.displace(session, job=job)
            needed -= job.gpus
