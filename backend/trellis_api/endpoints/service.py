"""The life of an endpoint; its state is that of its job.

start                                         writes or revives the endpoint's job of kind ``serve``, QUEUED
→ trellis_workers/jobs/launch.py              starts the job when there is room (``jobs/admission.py``)
→ trellis_train/engines/serve.py              loads the model and reports where it answers
→ trellis_workers/endpoints/idle.py           stops it when nobody has used it for long

An adapter needs no engine of its own: that of its base model's endpoint loads it (``sharing.py``). Nor does a
newer checkpoint of a job: it can take over that of an older one (``takeover.py``).
"""

from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

from sqlmodel import Session
from trellis_contracts.events import ServingEvent, ServingLoadEvent
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository, sharing, takeover
from trellis_api.endpoints.adapters import Adapter, choose_max_rank, find_adapter
from trellis_api.endpoints.errors import (
    EndpointNotFound,
    EndpointStopping,
    EndpointWindowFixed,
    EndpointWindowTooLong,
)
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.own_engine import add_own_job, forget_address, name_job, slots_for
from trellis_api.endpoints.schemas import EndpointLoad, EndpointStart, EndpointState, EndpointUpdate
from trellis_api.endpoints.uses import release_target
from trellis_api.evaluations.schemas import ModelTarget, Target
from trellis_api.evaluations.targets import FoundTarget, find_target, require_tried_template
from trellis_api.jobs import service
from trellis_api.jobs.models import SERVE, Job
from trellis_api.jobs.storage import check_storage
from trellis_api.models.repository import lock_model
from trellis_api.models.service import get_model

#: Cause of a stop that nobody asked for.
IDLE = "endpoint_idle"
#: Cause of a stop that makes room for a training (``preemption.py``).
PREEMPTED = "endpoint_preempted"
#: Cause of a stop of an engine that answers nobody.
ORPHANED = "endpoint_orphaned"


def get_endpoint(session: Session, *, endpoint_id: str) -> tuple[Endpoint, Job]:
    """Return the endpoint and its job; ``EndpointNotFound`` without one."""
    row = repository.find_endpoint(session, endpoint_id=endpoint_id)
    if row is None:
        raise EndpointNotFound(endpoint_id)
    return row, service.get_job(session, job_id=row.job_id)


def find_of_target(session: Session, target: Target) -> tuple[Endpoint, Job] | None:
    """Return the endpoint of a model or checkpoint, if it was ever served."""
    if isinstance(target, ModelTarget):
        row = repository.find_of_model(session, model_id=target.model)
    else:
        row = repository.find_of_checkpoint(session, job_id=target.job, step=target.step)
    return None if row is None else (row, service.get_job(session, job_id=row.job_id))


def start(
    session: Session, settings: Settings, *, target: Target, request: EndpointStart
) -> tuple[Endpoint, Job]:
    """Let a model or checkpoint be served. One that starts or is ready already stays as it is.

    A checkpoint may take over the engine of an older one of its job that nobody uses.

    Raises what stands against it: it is not here, is an adapter, writes no text, has a chat template that
    never ends, or is just stopping.
    """
    check_storage(settings)
    if isinstance(target, ModelTarget):
        get_model(session, model_id=target.model)
        # Of two who start the same model at once, one sees the other's endpoint.
        lock_model(session, model_id=target.model)
    elif (existing := find_of_target(session, target)) is not None:
        # Before the training's job: an engine that ends is locked first, and then what it served.
        service.get_locked_job(session, job_id=existing[1].id)
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
            _require_same_window(row, state, request)
            if request.idle_timeout_s is not None:
                row.idle_timeout_s = request.idle_timeout_s
            if request.preemptible is not None:
                row.is_preemptible = request.preemptible
            session.add(row)
            return row, job
    require_tried_template(settings, found)
    row = existing[0] if existing else _new_row(found, target)
    _apply(row, request)
    row.name = _public_name(found)
    host: tuple[Endpoint, Job] | None = None
    if adapter is not None:
        host = _find_host(session, settings, row=row, adapter=adapter, request=request)
    if adapter is not None and host is not None:
        job = sharing.share_engine(row, host, digest=adapter.digest)
    elif (
        settings.replaces_weights
        and adapter is None
        and (older := takeover.find_predecessor(session, row=row, request=request))
    ):
        job = takeover.ask(row, older)
    else:
        job = _give_engine(session, settings, row=row, found=found)
    repository.add_endpoint(session, row)
    if existing is None:
        service.announce(session, job=job)
    return row, job


def update(session: Session, *, endpoint_id: str, request: EndpointUpdate) -> tuple[Endpoint, Job]:
    """Change what the request names; whoever looks next (idle limit, admission) goes by it."""
    row, _ = get_endpoint(session, endpoint_id=endpoint_id)
    # Who makes room for a training holds the job's lock: it decides before or after this.
    job = service.get_locked_job(session, job_id=row.job_id)
    if "idle_timeout_s" in request.model_fields_set:
        row.idle_timeout_s = request.idle_timeout_s
    if "preemptible" in request.model_fields_set:
        row.is_preemptible = request.preemptible
    repository.add_endpoint(session, row)
    service.announce(session, job=job)
    return row, job


def stop(session: Session, *, endpoint_id: str) -> tuple[Endpoint, Job]:
    """Ask it to leave; one that has stopped or failed stays so. An adapter leaves the engine it shares."""
    row, _ = get_endpoint(session, endpoint_id=endpoint_id)
    job = service.get_locked_job(session, job_id=row.job_id)
    if row.engine_id is not None:
        _unload(session, row=row, job=job, why="request")
    elif job.state in service.STOPPABLE:
        service.request_stop(session, job_id=job.id)
    return row, job


def stop_if_idle(session: Session, *, endpoint_id: str, default_s: float) -> str | None:
    """Stop an endpoint that is still idle: the id of the job that was asked to leave, if one was.

    An adapter is unloaded, which ends no job. An engine stays while it has adapters: each has its own time.
    """
    row, _ = get_endpoint(session, endpoint_id=endpoint_id)
    job = service.get_locked_job(session, job_id=row.job_id)
    if not is_idle(row, job, default_s=default_s):
        return None
    if row.engine_id is not None:
        _unload(session, row=row, job=job, why="idle")
        return None
    if repository.list_sharing(session, job_id=job.id, attempt=job.attempt):
        return None
    job.reason, job.cause = "Stopped because it was idle.", IDLE
    service.request_stop(session, job_id=job.id)
    return job.id


def give_up_lost_load(session: Session, *, endpoint_id: str) -> None:
    """Give an adapter an engine of its own whose request to load got no answer."""
    row, _ = get_endpoint(session, endpoint_id=endpoint_id)
    job = service.get_locked_job(session, job_id=row.job_id)
    host = repository.find_by_job(session, job_id=job.id)
    if host is not None and row.engine_id == host.id and sharing.is_lost(row, host, job):
        sharing.give_own_engine(session, row=row, job=job, reason="The engine did not answer.")


def stop_orphan(session: Session, *, job_id: str) -> bool:
    """Ask a serving job to leave that no endpoint refers to; whether it was asked."""
    job = service.get_locked_job(session, job_id=job_id)
    if job.state not in service.STOPPABLE or repository.find_by_job(session, job_id=job_id) is not None:
        return False
    job.reason, job.cause = "Stopped because no endpoint uses it.", ORPHANED
    service.request_stop(session, job_id=job_id)
    return True


def is_idle(row: Endpoint, job: Job, *, default_s: float) -> bool:
    """Tell whether the endpoint is ready and unused for longer than its idle timeout."""
    since = idle_since(row, job)
    if since is None:
        return False
    return (utc_now() - since).total_seconds() > (row.idle_timeout_s or default_s)


def idle_since(row: Endpoint, job: Job) -> datetime | None:
    """Return when it was last used, or else became ready; None if it is not ready."""
    if state_of(row, job) != EndpointState.READY or row.ready_at is None:
        return None
    return max(row.ready_at, row.last_used_at or row.ready_at)


def state_of(row: Endpoint, job: Job) -> EndpointState:
    """Return the endpoint's state, from its job and its engine."""
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
    """Record that the engine is ready.

    Only an endpoint's own run may say so, and only with a unicast host.
    """
    row = repository.find_by_job(session, job_id=job.id)
    if job.kind != SERVE or row is None or not _is_host(event.host):
        return
    row.ready_attempt, row.ready_at = attempt, utc_now()
    row.host, row.port, row.context_length = str(event.host), event.port, event.max_model_len
    # As it was started in the end: without room for adapters where the model can't have them.
    row.max_lora_rank, row.tool_problem = event.max_lora_rank, event.tool_problem
    row.is_replaceable = event.is_replaceable
    session.add(row)
    service.announce(session, job=job)


def note_load(session: Session, *, job: Job, attempt: int, event: ServingLoadEvent) -> None:
    """Remember what the engine of a ready endpoint is at."""
    row = repository.find_by_job(session, job_id=job.id)
    if row is not None and row.ready_attempt == attempt:
        load = EndpointLoad(measured_at=event.time, **event.model_dump(exclude={"kind", "time"}))
        row.load = load.model_dump(mode="json")
        session.add(row)


def read_load(row: Endpoint, job: Job) -> EndpointLoad | None:
    """Return the current load of a ready endpoint's own engine; None before it has reported one."""
    is_ready = state_of(row, job) == EndpointState.READY
    return EndpointLoad.model_validate(row.load) if is_ready and row.load is not None else None


@dataclass(frozen=True)
class EndpointCounts:
    """Endpoints at one moment."""

    #: How many are in each state; 0 where there are none.
    by_state: dict[str, int]
    #: The load of each ready endpoint with an engine of its own, by its id.
    loads: dict[str, EndpointLoad]


def count_endpoints(session: Session) -> EndpointCounts:
    """Count endpoints by state and gather the loads of their engines, with one query."""
    by_state, loads = dict.fromkeys((state.value for state in EndpointState), 0), {}
    for row, job in repository.list_states(session):
        by_state[state_of(row, job).value] += 1
        load = read_load(row, job)
        if load is not None:
            loads[row.id] = load
    return EndpointCounts(by_state, loads)


def _unload(session: Session, *, row: Endpoint, job: Job, why: Literal["idle", "request"]) -> None:
    sharing.unload(row, why=why)
    session.add(row)
    session.flush()
    if row.target_job_id is not None:
        release_target(session, row.target_job_id)
    service.announce(session, job=job)


def _is_host(address: IPv4Address | IPv6Address) -> bool:
    return not (address.is_multicast or address.is_unspecified or address.is_link_local)


def _find_host(
    session: Session, settings: Settings, *, row: Endpoint, adapter: Adapter, request: EndpointStart
) -> tuple[Endpoint, Job] | None:
    """Return the endpoint of an adapter's base model, started if needed; None if it can't serve it."""
    if settings.endpoint_max_adapters == 0 or not adapter.is_plain:
        return None
    base = ModelTarget(model=adapter.base.id)
    existing = find_of_target(session, base)
    if existing is not None:
        existing = existing[0], service.get_locked_job(session, job_id=existing[1].id)
    state = state_of(*existing) if existing else EndpointState.STOPPED
    is_up = state in {EndpointState.STARTING, EndpointState.READY}
    if sharing.is_refused(row, digest=adapter.digest, running=existing[1] if existing and is_up else None):
        return None
    sharing.forget_refusal(row)
    if existing is not None:
        if state == EndpointState.STOPPING:
            raise EndpointStopping("The base model's endpoint is stopping. Retry once it has stopped.")
        if is_up:
            return existing if sharing.can_load(existing[0], rank=adapter.rank, request=request) else None
    as_it_was = as_last_asked(existing[0]) if existing else EndpointStart()
    if request.max_model_len not in {None, as_it_was.max_model_len}:
        return None
    host = start(session, settings, target=base, request=as_it_was)
    # An adapter that came from elsewhere may have a higher rank than any that was trained here.
    host[0].max_lora_rank = choose_max_rank(session, settings, base_id=adapter.base.id, at_least=adapter.rank)
    session.add(host[0])
    return host


def as_last_asked(row: Endpoint) -> EndpointStart:
    """Return the settings that a person last gave an endpoint, which every other start keeps."""
    return EndpointStart(idle_timeout_s=row.idle_timeout_s, max_model_len=row.max_model_len)


def _give_engine(session: Session, settings: Settings, *, row: Endpoint, found: FoundTarget) -> Job:
    """Let the row's own job be run, anew where it has run before."""
    is_base = row.target_model_id == found.model_id
    row.max_lora_rank = choose_max_rank(session, settings, base_id=found.model_id) if is_base else None
    own = service.get_job(session, job_id=row.job_id) if row.job_id and row.engine_id is None else None
    if own is None:
        return add_own_job(session, row=row, model_id=found.model_id, slots=slots_for(settings))
    forget_address(row)
    job = service.get_locked_job(session, job_id=own.id)
    job.gpus, job.name = slots_for(settings), name_job(row)
    return service.resume(session, job_id=job.id, data_root=settings.data_root)


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
    if request.preemptible is not None:
        row.is_preemptible = request.preemptible


def _require_same_window(row: Endpoint, state: EndpointState, request: EndpointStart) -> None:
    """Raise ``EndpointWindowFixed`` for another context length: a running engine can't change it."""
    given = row.context_length if state == EndpointState.READY else row.max_model_len
    if request.max_model_len not in {None, given, row.max_model_len}:
        has = f"{given} tokens" if given else "as many tokens as fit"
        raise EndpointWindowFixed(
            f"The endpoint is {state} with {has}. Stop it first to start it with {request.max_model_len}.",
            {"max_model_len": given},
        )


def _check_window(found: FoundTarget, request: EndpointStart) -> None:
    window = found.model.context_length if found.model else None
    if window is not None and request.max_model_len is not None and request.max_model_len > window:
        raise EndpointWindowTooLong(
            f"{found.name} supports at most {window} tokens, not {request.max_model_len}.", {"limit": window}
        )


def _public_name(found: FoundTarget) -> str:
    return f"{found.job_id}:{found.step}" if found.job_id else found.name
