"""Adapters in the engine of their base model: asked for, loaded, unloaded, or given an engine of their own.

The engine's run is told with each heartbeat what to serve (``adapters.list_adapters``) and answers with an
event. Request and answer bear the same identity (``load_id``), so an answer that comes late settles nothing.
"""

import logging
import secrets
from datetime import datetime, timedelta
from typing import Literal

from sqlmodel import Session
from trellis_contracts.events import AdapterEvent

from trellis_api.core.columns import utc_now
from trellis_api.endpoints import repository, takeover
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.own_engine import add_own_job, forget_address, forget_request
from trellis_api.endpoints.schemas import EndpointStart
from trellis_api.jobs import service
from trellis_api.jobs.models import Job

log = logging.getLogger(__name__)

#: A ready engine that has not answered a request to load an adapter for so long never will.
LOST_AFTER = timedelta(minutes=10)
#: A refusal holds for so long, unless something changes: its reason may have been short of memory or disk.
REFUSED_FOR = timedelta(days=1)
_MAX_REASON = 500


def share_engine(row: Endpoint, host: tuple[Endpoint, Job], *, digest: str) -> Job:
    """Let the engine of ``host`` load the row's adapter: the reply to its next heartbeat names it.

    ``digest`` tells what is asked for: where it is refused, something else is worth another try.
    """
    engine, job = host
    forget_address(row)
    row.asked_with = digest
    row.job_id, row.engine_id, row.max_lora_rank = job.id, engine.id, None
    row.load_id, row.asked_attempt, row.asked_at = secrets.token_hex(8), job.attempt, utc_now()
    row.unloaded_at = row.unloaded_for = None
    return job


def can_load(host: Endpoint, *, rank: int, request: EndpointStart) -> bool:
    """Tell whether an engine was started with room for an adapter and with the requested context length."""
    fits = request.max_model_len in {None, host.max_model_len, host.context_length}
    return fits and host.max_lora_rank is not None and rank <= host.max_lora_rank


def unload(row: Endpoint, *, why: Literal["idle", "request"]) -> None:
    """Let the engine drop the adapter; requests in flight are still answered. It can be asked for again."""
    if row.asked_attempt is None:
        return
    forget_request(row)
    row.unloaded_at, row.unloaded_for = utc_now(), why


def note_adapter(session: Session, *, job: Job, attempt: int, event: AdapterEvent) -> None:
    """Record that the engine loaded an adapter, or can't: then it is merged for an engine of its own.

    The engine of a checkpoint answers for a newer one that takes it over.
    """
    row = repository.find_endpoint(session, endpoint_id=event.endpoint_id)
    host = repository.find_by_job(session, job_id=job.id)
    if host is not None and host.target_job_id is not None:  # not a base model's: it has no adapters
        takeover.note_answer(session, row=row, host=host, job=job, attempt=attempt, event=event)
        return
    if row is None or host is None or row.engine_id != host.id:
        return
    if row.asked_attempt != attempt or row.load_id != event.load_id:
        return  # the answer to a request that has been taken back, or made anew
    if event.reason is not None:
        give_own_engine(session, row=row, job=job, reason=event.reason)
        return
    row.ready_attempt, row.ready_at = attempt, utc_now()
    row.host, row.port, row.context_length = host.host, host.port, host.context_length
    row.tool_problem = host.tool_problem
    session.add(row)
    service.announce(session, job=job)


def give_own_engine(session: Session, *, row: Endpoint, job: Job, reason: str) -> None:
    """Leave the engine that ``job`` runs for one that serves the merged weights alone."""
    if row.is_takeover:
        takeover.give_own_engine(session, row=row, job=job, reason=reason)
        return
    log.warning("endpoint %s gets an engine of its own: %s", row.id, reason)
    own = add_own_job(session, row=row, model_id=job.model_id, slots=job.gpus)
    row.refusal, row.refused_at, row.refused_by = reason[:_MAX_REASON], utc_now(), service.submission_id(job)
    session.add(row)
    session.flush()
    service.announce(session, job=own)


def is_refused(row: Endpoint, *, digest: str, running: Job | None) -> bool:
    """Tell whether the base model's engine would refuse an adapter again, as far as is known.

    It may not after a day, with other files, other limits, or in another run of the engine. ``running`` is
    that run; none is started for the sake of a try.
    """
    until = refused_until(row)
    if until is None or utc_now() >= until or row.asked_with != digest:
        return False
    return running is None or service.submission_id(running) == row.refused_by


def forget_refusal(row: Endpoint) -> None:
    """Let the base model's engine be asked again."""
    row.refusal = row.refused_at = row.refused_by = None


def refused_until(row: Endpoint) -> datetime | None:
    """Return when a refusal expires at the latest; None without one."""
    return row.refused_at + REFUSED_FOR if row.refusal is not None and row.refused_at is not None else None


def is_lost(row: Endpoint, host: Endpoint, job: Job) -> bool:
    """Tell whether a ready engine has been silent about an adapter, or about newer weights, for too long."""
    if row.asked_attempt != job.attempt or row.ready_attempt == job.attempt or row.asked_at is None:
        return False
    if host.ready_attempt != job.attempt or host.ready_at is None:
        return False  # the engine itself is being loaded
    lost_after = takeover.LOST_AFTER if row.is_takeover else LOST_AFTER
    return utc_now() - max(row.asked_at, host.ready_at) > lost_after
