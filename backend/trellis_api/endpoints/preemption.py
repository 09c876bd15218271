"""Endpoints that make room for trainings: which may be stopped, in which order, and how.

Only an endpoint that is ready is stopped: one that is loading has just had its turn. One that is not idle is
stopped only for a training of at least its own priority: when it is started again, it stands behind that.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import EndpointPreemption
from trellis_api.endpoints import repository, service
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.schemas import EndpointState
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Job

#: Without a request for so long, an endpoint counts as idle for a training that waits.
IDLE_AFTER = timedelta(seconds=60)


class Outlook(StrEnum):
    """What becomes of an endpoint that holds slots which a training waits for."""

    #: Its slots come free within seconds.
    STOPPING = "stopping"
    #: It is stopped as soon as that is enough for the training.
    PREEMPTIBLE = "preemptible"
    #: It is loading, or in use; it is stopped when it is idle.
    BUSY = "busy"
    #: It was marked to be kept.
    KEPT = "kept"
    #: The platform's setting says that trainings wait.
    OFF = "off"


@dataclass(frozen=True)
class SlotHolder:
    """An endpoint's engine that holds slots."""

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
        """What becomes of it while a training of this priority waits."""
        if self.job.state == JobState.STOPPING:
            return Outlook.STOPPING
        if self.is_kept:
            return Outlook.KEPT
        if mode == "off":
            return Outlook.OFF
        in_use = mode == "any" and self.is_ready and self.job.priority <= priority
        return Outlook.PREEMPTIBLE if self.is_idle or in_use else Outlook.BUSY


def list_slot_holders(session: Session) -> list[SlotHolder]:
    """Engines of endpoints that hold slots: idle ones first, of each kind the least recently used."""
    pairs = repository.list_holding_slots(session)
    adapters: defaultdict[str, list[Endpoint]] = defaultdict(list)
    for adapter in repository.list_sharing_of_jobs(session, job_ids=[job.id for _, job in pairs]):
        adapters[adapter.job_id].append(adapter)
    holders = [_describe(row, job, adapters[job.id]) for row, job in pairs]
    return sorted(holders, key=lambda each: (not each.is_idle, each.used_at))


def preempt(session: Session, *, holder: SlotHolder, training: Job) -> None:
    """Stop an endpoint for a training, with the reason; requests in flight get a few seconds."""
    job = jobs.get_locked_job(session, job_id=holder.job.id)
    if job.state != JobState.RUNNING:
        return
    job.reason = f"Stopped to make room for job {training.name} ({training.id})."
    job.cause = service.PREEMPTED
    jobs.request_stop(session, job_id=job.id)
    adapters = repository.list_sharing(session, job_id=job.id, attempt=job.attempt)
    for row in (holder.row, *adapters):
        row.preempted_by = training.id
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
