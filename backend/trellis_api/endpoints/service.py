"""The life of an endpoint; its state is that of its job.

start                                         writes or revives the endpoint's job of kind ``serve``, QUEUED
→ trellis_workers/jobs/launch.py              starts the job when there is room (``jobs/admission.py``)
→ trellis_train/engines/serve.py              loads the model and reports where it answers
→ trellis_workers/endpoints/idle.py           stops it when nobody has used it for long

An adapter needs no engine of its own: that of its base model's endpoint loads it.
"""

import logging
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address

from sqlmodel import Session
from trellis_contracts.events import AdapterEvent, ServingEvent
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository
from trellis_api.endpoints.adapters import Adapter, choose_max_rank, find_adapter
from trellis_api.endpoints.errors import EndpointNotFound, EndpointStopping, EndpointWindowTooLong
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.schemas import EndpointStart, EndpointState
from trellis_api.evaluations.schemas import ModelTarget, Target
from trellis_api.evaluations.targets import FoundTarget, find_target
from trellis_api.jobs import repository as jobs
from trellis_api.jobs import service
from trellis_api.jobs.models import SERVE, Job
from trellis_api.jobs.storage import check_storage
from trellis_api.models.repository import lock_model
from trellis_api.models.service import get_model

log = logging.getLogger(__name__)

#: Stands in a job's row where a training has its recipe.
RECIPE = "serve"
#: Cause of a stop that nobody asked for.
IDLE = "endpoint_idle"


def get_endpoint(session: Session, *, endpoint_id: str) -> tuple[Endpoint, Job]:
    """The endpoint and its job; ``EndpointNotFound`` without one."""
    row = repository.find_endpoint(session, endpoint_id=endpoint_id)
    if row is None:
        raise EndpointNotFound(endpoint_id)
    return row, service.get_job(session, job_id=row.job_id)


def find_of_target(session: Session, target: Target) -> tuple[Endpoint, Job] | None:
    """The endpoint of a model or checkpoint, if it was ever served."""
    if isinstance(target, ModelTarget):
        row = repository.find_of_model(session, model_id=target.model)
    else:
        row = repository.find_of_checkpoint(session, job_id=target.job, step=target.step)
    return None if row is None else (row, service.get_job(session, job_id=row.job_id))


def start(
    session: Session, settings: Settings, *, target: Target, request: EndpointStart
) -> tuple[Endpoint, Job]:
    """Let a model or checkpoint be served. One that starts or is ready already stays as it is.

    Raises what stands against it: it is not here, is an adapter, writes no text, or is just stopping.
    """
    check_storage(settings)
    if isinstance(target, ModelTarget):
        get_model(session, model_id=target.model)
        # Of two who start the same model at once, one sees the other's endpoint.
        lock_model(session, model_id=target.model)
    adapter = find_adapter(session, settings, target)
    found = find_target(session, settings, target, for_serving=True)
    _check_window(found, request)
    existing = find_of_target(session, target)
    if existing is not None:
        row, job = existing[0], service.get_locked_job(session, job_id=existing[1].id)
        state = state_of(row, job)
        if state == EndpointState.STOPPING:
            raise EndpointStopping("The endpoint is stopping. Restart it once it has stopped.")
        if state in {EndpointState.STARTING, EndpointState.READY}:
            if request.idle_timeout_s is not None:
                row.idle_timeout_s = request.idle_timeout_s
                session.add(row)
            return row, job
    row = existing[0] if existing else _new_row(found, target)
    _apply(row, request)
    row.name = _public_name(found)
    host = None if adapter is None else _find_host(session, settings, adapter=adapter, request=request)
    job = share_engine(row, host) if host else _give_engine(session, settings, row=row, found=found)
    repository.add_endpoint(session, row)
    if existing is None:
        service.announce(session, job=job)
    return row, job


def stop(session: Session, *, endpoint_id: str) -> tuple[Endpoint, Job]:
    """Ask it to leave; one that has stopped or failed stays so. An adapter leaves the engine it shares."""
    row, _ = get_endpoint(session, endpoint_id=endpoint_id)
    job = service.get_locked_job(session, job_id=row.job_id)
    if row.engine_id is not None:
        row.asked_attempt = None
        session.add(row)
        session.flush()
    elif job.state in service.STOPPABLE:
        service.request_stop(session, job_id=job.id)
    return row, job


def stop_if_idle(session: Session, *, endpoint_id: str, default_s: float) -> str | None:
    """Ask an endpoint to leave that is still idle; the id of its job, or None where it is in use again."""
    row, _ = get_endpoint(session, endpoint_id=endpoint_id)
    job = service.get_locked_job(session, job_id=row.job_id)
    if not is_idle(row, job, default_s=default_s):
        return None
    job.reason, job.cause = "Stopped because it was idle.", IDLE
    service.request_stop(session, job_id=job.id)
    return job.id


def is_idle(row: Endpoint, job: Job, *, default_s: float) -> bool:
    """Whether it is ready and nobody has used it for longer than it may idle."""
    since = idle_since(row, job)
    if since is None:
        return False
    return (utc_now() - since).total_seconds() > (row.idle_timeout_s or default_s)


def idle_since(row: Endpoint, job: Job) -> datetime | None:
    """The last sign of use, or when it became ready; None where it is not ready."""
    if state_of(row, job) != EndpointState.READY or row.ready_at is None:
        return None
    return max(row.ready_at, row.last_used_at or row.ready_at)


def state_of(row: Endpoint, job: Job) -> EndpointState:
    """What the endpoint's job and its engine make of it."""
    if row.engine_id is not None and row.asked_attempt != job.attempt:
        return EndpointState.STOPPED  # unloaded, or the engine was started anew since
    if job.state == JobState.RUNNING and row.ready_attempt == job.attempt:
        return EndpointState.READY
    if job.state == JobState.STOPPING:
        return EndpointState.STOPPING
    if job.state in ACTIVE:
        return EndpointState.STARTING
    if job.state in {JobState.FAILED, JobState.CRASHED}:
        return EndpointState.FAILED
    return EndpointState.STOPPED


def note_ready(session: Session, *, job: Job, attempt: int, event: ServingEvent) -> None:
    """The engine answers. Only the run of an endpoint may say so, and only of a host that is no broadcast."""
    row = repository.find_by_job(session, job_id=job.id)
    if job.kind != SERVE or row is None or not _is_host(event.host):
        return
    row.ready_attempt, row.ready_at = attempt, utc_now()
    row.host, row.port, row.context_length = str(event.host), event.port, event.max_model_len
    session.add(row)
    service.announce(session, job=job)


def note_adapter(session: Session, *, job: Job, attempt: int, event: AdapterEvent) -> None:
    """The engine has loaded an adapter, or can't: then the adapter is merged for an engine of its own."""
    row = repository.find_endpoint(session, endpoint_id=event.endpoint_id)
    host = repository.find_by_job(session, job_id=job.id)
    if row is None or host is None or row.engine_id != host.id or row.asked_attempt != attempt:
        return
    if event.reason is None:
        row.ready_attempt, row.ready_at = attempt, utc_now()
        row.host, row.port, row.context_length = host.host, host.port, host.context_length
    else:
        log.warning("endpoint %s gets an engine of its own: %s", row.id, event.reason)
        own = add_own_job(session, row=row, model_id=job.model_id, slots=job.gpus)
        service.announce(session, job=own)
    session.add(row)
    session.flush()


def count_by_state(session: Session) -> dict[str, int]:
    """How many endpoints are in each state; 0 where there are none."""
    counts = dict.fromkeys((state.value for state in EndpointState), 0)
    for row, job in repository.list_states(session):
        counts[state_of(row, job).value] += 1
    return counts


def slots_for(settings: Settings) -> int:
    """Slots that an endpoint takes: none on a CPU, where it shares the cores."""
    return 1 if settings.resolved_platform == "cuda" else 0


def _is_host(address: IPv4Address | IPv6Address) -> bool:
    return not (address.is_multicast or address.is_unspecified or address.is_link_local)


def _find_host(
    session: Session, settings: Settings, *, adapter: Adapter, request: EndpointStart
) -> tuple[Endpoint, Job] | None:
    """The endpoint of an adapter's base model, started if needed; None where its engine can't serve it."""
    if settings.endpoint_max_adapters == 0 or not adapter.is_plain:
        return None
    base = ModelTarget(model=adapter.base.id)
    existing = find_of_target(session, base)
    if existing is not None and state_of(*existing) in {EndpointState.STARTING, EndpointState.READY}:
        return existing if can_load(existing[0], rank=adapter.rank, request=request) else None
    if existing is not None and state_of(*existing) == EndpointState.STOPPING:
        return None
    host = start(session, settings, target=base, request=request)
    # An adapter that came from elsewhere may have a higher rank than any that was trained here.
    host[0].max_lora_rank = choose_max_rank(session, settings, base_id=adapter.base.id, at_least=adapter.rank)
    session.add(host[0])
    return host


def _give_engine(session: Session, settings: Settings, *, row: Endpoint, found: FoundTarget) -> Job:
    """Let the row's own job be run, anew where it has run before."""
    is_base = row.target_model_id == found.model_id
    row.max_lora_rank = choose_max_rank(session, settings, base_id=found.model_id) if is_base else None
    own = service.get_job(session, job_id=row.job_id) if row.job_id and row.engine_id is None else None
    if own is None:
        return add_own_job(session, row=row, model_id=found.model_id, slots=slots_for(settings))
    job = service.get_locked_job(session, job_id=own.id)
    job.gpus, job.name = slots_for(settings), _job_name(row)
    return service.resume(session, job_id=job.id, data_root=settings.data_root)


def add_own_job(session: Session, *, row: Endpoint, model_id: str, slots: int) -> Job:
    """Write the job of an engine that serves this endpoint alone."""
    job = Job(id=new_id("job"), name=_job_name(row), kind=SERVE, recipe=RECIPE, model_id=model_id, gpus=slots)
    jobs.add_job(session, job=job, tags=[])  # before the row names it: the database checks
    row.job_id, row.engine_id, row.asked_attempt = job.id, None, None
    return job


def share_engine(row: Endpoint, host: tuple[Endpoint, Job]) -> Job:
    """Let the engine of ``host`` load the row's adapter: the reply to its next heartbeat names it."""
    engine, job = host
    row.job_id, row.engine_id, row.asked_attempt = job.id, engine.id, job.attempt
    row.max_lora_rank = None
    return job


def can_load(host: Endpoint, *, rank: int, request: EndpointStart) -> bool:
    """Whether a running engine was started with room for an adapter, and with the window that is wanted."""
    fits = request.max_model_len in {None, host.max_model_len, host.context_length}
    return fits and host.max_lora_rank is not None and rank <= host.max_lora_rank


def _new_row(found: FoundTarget, target: Target) -> Endpoint:
    return Endpoint(
        id=new_id("ep"),
        job_id="",
        name=_public_name(found),
        target_model_id=target.model if isinstance(target, ModelTarget) else None,
        target_job_id=found.job_id,
        target_step=found.step,
    )


def _apply(row: Endpoint, request: EndpointStart) -> None:
    row.idle_timeout_s, row.max_model_len = request.idle_timeout_s, request.max_model_len


def _check_window(found: FoundTarget, request: EndpointStart) -> None:
    window = found.model.context_length if found.model else None
    if window is not None and request.max_model_len is not None and request.max_model_len > window:
        raise EndpointWindowTooLong(
            f"{found.name} supports at most {window} tokens, not {request.max_model_len}.", {"limit": window}
        )


def _public_name(found: FoundTarget) -> str:
    return f"{found.job_id}:{found.step}" if found.job_id else found.name


def _job_name(row: Endpoint) -> str:
    return f"Endpoint {row.name}"[:200]
