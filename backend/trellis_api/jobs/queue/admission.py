"""Whose turn it is: which queued job is launched next, and what makes room for it.

Exports need no slot and stand in a line of their own. Evaluations stand back behind trainings: on a CPU they
take no slot and only some run at once; on GPUs they take slots that no training waits for, and give them
back when one does: they are stopped and queued again, and go on where they were. Endpoints stand in line with
trainings where they take slots, and make room for one as far as the platform's setting says
(``endpoints/preemption.py``); on a CPU they take none, and only some run at once. For an endpoint that has
no room, others make room only when they are idle: those in use would take turns for ever.
"""

from collections.abc import Sequence

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.benchmarks.repository import list_installing
from trellis_api.core.settings import EndpointPreemption
from trellis_api.datasets.repository import list_ids_being_made
from trellis_api.endpoints import preemption
from trellis_api.endpoints.preemption import Outlook, SlotHolder
from trellis_api.evaluations import repository as evaluations
from trellis_api.evaluations import service as evaluation_service
from trellis_api.jobs import repository
from trellis_api.jobs.models import EVALUATE, EXPORT, SERVE, TRAIN, Job
from trellis_api.jobs.service import Claim, claim_for_launch


def claim_next(
    session: Session,
    *,
    total_slots: int,
    max_exports: int,
    max_evaluations: int = 1,
    max_endpoints: int = 1,
    endpoint_preemption: EndpointPreemption = "idle",
    platform: str | None = None,
) -> Claim | None:
    """Take the next job to launch, or None when nothing is queued or the next one has no room.

    The first in line is waited for: smaller jobs do not overtake it, or a large one
    would wait for ever. A job whose rows or benchmarks are still being brought lets others pass, and so
    does one that was composed for another platform than ``platform`` (None: any will do).
    Call it again, in a new transaction, until it returns None.
    """
    repository.lock_admission(session)
    free = total_slots - repository.count_held_slots(session)
    free_exports = max_exports - repository.count_running_exports(session)
    free_evaluations = max_evaluations - repository.count_running_evaluations(session)
    free_endpoints = max_endpoints - repository.count_running_endpoints(session)
    queued = repository.list_queued(session)
    being_made = list_ids_being_made(session) if queued else set()
    held_back = _find_waiting_for_files(session, queued)
    if platform is not None and queued:
        held_back |= repository.map_queued_for_other_platform(session, platform=platform).keys()
    for waiting in queued:
        if waiting.id in held_back or {waiting.dataset_id, waiting.validation_dataset_id} & being_made:
            continue
        if waiting.kind == EXPORT and free_exports <= 0:
            continue
        if waiting.kind == EVALUATE and not waiting.gpus and free_evaluations <= 0:
            continue
        if waiting.kind == SERVE and not waiting.gpus and free_endpoints <= 0:
            _end_idle_endpoints(session, job=waiting, needed=1 - free_endpoints, mode=endpoint_preemption)
            continue
        if waiting.gpus > free and waiting.gpus:
            if waiting.kind != EVALUATE and free >= 0:
                _make_room(session, job=waiting, needed=waiting.gpus - free, mode=endpoint_preemption)
            free = -1  # whoever comes behind it waits too
            continue
        claim = claim_for_launch(session, job_id=waiting.id)
        if claim is not None:
            return claim
    return None


def _find_waiting_for_files(session: Session, queued: Sequence[Job]) -> set[str]:
    """Find the queued evaluations whose benchmarks are being installed."""
    asked = [job for job in queued if job.kind == EVALUATE]
    coming = set(list_installing(session)) if asked else set()
    if not coming:
        return set()
    waiting = evaluations.map_by_job(session, job_ids=[job.id for job in asked])
    return {job_id for job_id, row in waiting.items() if coming & set(row.benchmark_names)}


def _make_room(session: Session, *, job: Job, needed: int, mode: EndpointPreemption) -> None:
    """Stop endpoints and evaluations for a job, no more than it needs.

    Idle endpoints first, which nobody misses; then evaluations, the newest first, which go on afterwards;
    then endpoints in use, the least recently used first.
    """
    holding = repository.list_holding_slots(session)
    needed -= sum(each.gpus for each in holding if each.state == JobState.STOPPING)
    if needed <= 0:
        return
    running = [each for each in holding if each.kind == EVALUATE and each.state != JobState.STOPPING]
    endpoints = _list_preemptible(session, job=job, mode=mode)
    in_order: list[Job | SlotHolder] = [
        *(each for each in endpoints if each.is_idle),
        *(each for each in reversed(running) if each.gpus),
        *(each for each in endpoints if not each.is_idle),
    ]
    for each in _choose(in_order, needed=needed):
        if isinstance(each, SlotHolder):
            preemption.preempt(session, holder=each, job=job)
        else:
            evaluation_service.displace(session, job=each)


def _end_idle_endpoints(session: Session, *, job: Job, needed: int, mode: EndpointPreemption) -> None:
    """Stop idle endpoints on a CPU, the least recently used first, for one that is queued."""
    holders = preemption.list_slot_holders(session, on_cpu=True)
    needed -= sum(each.job.state == JobState.STOPPING for each in holders)
    for each in _keep_preemptible(holders, job=job, mode=mode)[: max(needed, 0)]:
        preemption.preempt(session, holder=each, job=job)


def _list_preemptible(session: Session, *, job: Job, mode: EndpointPreemption) -> list[SlotHolder]:
    if job.kind not in {TRAIN, SERVE}:
        return []
    return _keep_preemptible(preemption.list_slot_holders(session), job=job, mode=mode)


def _keep_preemptible(
    holders: Sequence[SlotHolder], *, job: Job, mode: EndpointPreemption
) -> list[SlotHolder]:
    if job.kind == SERVE and mode == "any":
        mode = "idle"
    return [each for each in holders if each.outlook(mode, priority=job.priority) is Outlook.PREEMPTIBLE]


def _choose(in_order: Sequence[Job | SlotHolder], *, needed: int) -> list[Job | SlotHolder]:
    """Choose the first ones that together free enough slots, without surplus; none if all are too few."""
    chosen: list[Job | SlotHolder] = []
    for each in in_order:
        if needed > 0:
            chosen.append(each)
            needed -= _count_slots(each)
    if needed > 0:
        return []
    for each in reversed(list(chosen)):  # those that are missed most are spared first
        if _count_slots(each) <= -needed:
            chosen.remove(each)
            needed += _count_slots(each)
    return chosen


def _count_slots(each: Job | SlotHolder) -> int:
    return each.job.gpus if isinstance(each, SlotHolder) else each.gpus
