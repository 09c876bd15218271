"""Endpoints that make room for trainings and other endpoints: which may be stopped, in which order, and how.

Only an endpoint that is ready is stopped: one that is loading has just had its turn. One that is not idle is
stopped only for a training of at least its own priority: when it is started again, it stands behind that.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import EndpointPreemption
from trellis_api.endpoints import repository, service
from trellis_api.endpoints.models import IDLE_AFTER, Endpoint
from trellis_api.endpoints.schemas import EndpointState
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Job


class Outlook(StrEnum):
    """What becomes of an endpoint that holds what a training or another endpoint waits for."""

    #: Its slots come free within seconds.
    STOPPING = "stopping"
    #: It is stopped as soon as that is enough for the job.
    PREEMPTIBLE = "preemptible"
    #: It is loading, or in use; it is stopped when it is idle.
    BUSY = "busy"
    #: It was marked to be kept.
    KEPT = "kept"
    #: The platform's setting says that jobs wait.
    OFF = "off"


@dataclass(frozen=True)
class SlotHolder:
    """An endpoint's engine that holds slots, or a place among those that a CPU runs at once."""

    row: Endpoint
    job: Job
    #: Last request, or when it became ready.
    used_at: datetime
    is_ready: bool
    #: Whether it, or an adapter in its engine, was marked to be kept.
    is_kept: bool

    @property
    def is_idle(self) -> bool:
        """Whether it is ready and had no request for a while."""
        return self.is_ready and utc_now() - self.used_at > IDLE_AFTER

    def outlook(self, mode: EndpointPreemption, *, priority: int) -> Outlook:
        """Return what will happen to the slot holder while a job of this priority waits."""
        if self.job.state == JobState.STOPPING:
            return Outlook.STOPPING
        if self.is_kept:
            return Outlook.KEPT
        if mode == "off":
            return Outlook.OFF
        in_use = mode == "any" and self.is_ready and self.job.priority <= priority
        return Outlook.PREEMPTIBLE if self.is_idle or in_use else Outlook.BUSY


def list_slot_holders(session: Session, *, on_cpu: bool = False) -> list[SlotHolder]:
    """List the endpoints' engines that hold slots: idle ones first, each kind by least recent use.

    ``on_cpu``: those that take none, of which only some run at once.
    """
    pairs = repository.list_holding_slots(session, on_cpu=on_cpu)
    adapters: defaultdict[str, list[Endpoint]] = defaultdict(list)
    for adapter in repository.list_sharing_of_jobs(session, job_ids=[job.id for _, job in pairs]):
        adapters[adapter.job_id].append(adapter)
    holders = [_describe(row, job, adapters[job.id]) for row, job in pairs]
    return sorted(holders, key=lambda each: (not each.is_idle, each.used_at))


def preempt(session: Session, *, holder: SlotHolder, job: Job) -> None:
    """Stop an endpoint for a job, with the reason; requests in flight get a few seconds."""
    stopped = jobs.get_locked_job(session, job_id=holder.job.id)
    if stopped.state != JobState.RUNNING:
        return
    successor = repository.find_by_job(session, job_id=job.id)
    what = f"endpoint {successor.name} ({successor.id})" if successor else f"job {job.name} ({job.id})"
    stopped.reason = f"Stopped to make room for {what}."
    stopped.cause = service.PREEMPTED
    jobs.request_stop(session, job_id=stopped.id)
    adapters = repository.list_sharing(session, job_id=stopped.id, attempt=stopped.attempt)
    for row in (holder.row, *adapters):
        row.preempted_by = successor.id if successor else job.id
        session.add(row)
    session.flush()


def _describe(row: Endpoint, job: Job, adapters: Sequence[Endpoint]) -> SlotHolder:
    since = row.ready_at or job.launched_at or job.queued_at
    used = [
        row.last_used_at,
        *(each.asked_at for each in adapters),
        *(each.last_used_at for each in adapters),
    ]
    return SlotHolder(
        row=row,
        job=job,
        used_at=max([since, *(each for each in used if each is not None)]),
        is_ready=service.state_of(row, job) == EndpointState.READY,
        is_kept=not all(each.is_preemptible for each in (row, *adapters)),
    )
