"""The life of an endpoint; its state is that of its job.

start                                         writes or revives the endpoint's job of kind ``serve``, QUEUED
→ trellis_workers/jobs/launch.py              starts the job when there is room (``jobs/admission.py``)
→ trellis_train/engines/serve.py              loads the model and reports where it answers
→ trellis_workers/endpoints/idle.py           stops it when nobody has used it for long
"""

from datetime import datetime
from ipaddress import IPv4Address, IPv6Address

from sqlmodel import Session
from trellis_contracts.events import ServingEvent
from trellis_contracts.states import ACTIVE, FINISHED, JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository
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
    found = find_target(session, settings, target)
    _check_window(found, request)
    existing = find_of_target(session, target)
    if existing is None:
        return _create(session, settings, found=found, request=request)
    row, job = existing[0], service.get_locked_job(session, job_id=existing[1].id)
    if job.state == JobState.STOPPING:
        raise EndpointStopping("The endpoint is stopping. Restart it once it has stopped.")
    if job.state in FINISHED:
        _apply(row, request)
        row.name = _public_name(found)
        job.gpus, job.name = slots_for(settings), _job_name(row)
        service.resume(session, job_id=job.id, data_root=settings.data_root)
    elif request.idle_timeout_s is not None:
        row.idle_timeout_s = request.idle_timeout_s
    session.add(row)
    session.flush()
    return row, job


def stop(session: Session, *, endpoint_id: str) -> tuple[Endpoint, Job]:
    """Ask it to leave; one that has stopped or failed stays so."""
    row, _ = get_endpoint(session, endpoint_id=endpoint_id)
    job = service.get_locked_job(session, job_id=row.job_id)
    if job.state in service.STOPPABLE:
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


def _create(
    session: Session, settings: Settings, *, found: FoundTarget, request: EndpointStart
) -> tuple[Endpoint, Job]:
    row = Endpoint(
        id=new_id("ep"),
        job_id=new_id("job"),
        name=_public_name(found),
        target_model_id=None if found.job_id else found.model_id,
        target_job_id=found.job_id,
        target_step=found.step,
    )
    _apply(row, request)
    job = Job(
        id=row.job_id,
        name=_job_name(row),
        kind=SERVE,
        recipe=RECIPE,
        model_id=found.model_id,
        gpus=slots_for(settings),
    )
    jobs.add_job(session, job=job, tags=[])
    repository.add_endpoint(session, row)
    service.announce(session, job=job)
    return row, job


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
