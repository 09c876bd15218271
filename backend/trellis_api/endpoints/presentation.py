"""Turns rows of endpoints into what clients read, with what the server decides."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.references import NamedReference
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository, service, sharing
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.openai.usage import read_requests
from trellis_api.endpoints.schemas import EndpointRead, EndpointState, SharingRefusal
from trellis_api.endpoints.takeover import REPLACED
from trellis_api.jobs import presentation
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import map_job_names
from trellis_api.jobs.schemas import JobRead
from trellis_api.jobs.service import STOPPABLE
from trellis_api.models.repository import map_model_names

_UNLOADED_FOR: dict[str, Literal["idle", "request"]] = {"idle": "idle", "request": "request"}
_OVER = frozenset({EndpointState.STOPPED, EndpointState.FAILED})


def present(
    session: Session, settings: Settings, pair: tuple[Endpoint, Job], *, has_detail: bool = True
) -> EndpointRead:
    """Present one endpoint, with the last lines of its log if it failed."""
    return present_all(session, settings, [pair], has_detail=has_detail)[0]


def list_page(
    session: Session, settings: Settings, *, is_up: bool | None = None, cursor: str | None, limit: int
) -> Page[EndpointRead]:
    """List one page, newest first."""
    before = decode_time_position(cursor) if cursor is not None else None
    pairs = repository.list_endpoints(session, is_up=is_up, before=before, limit=limit + 1)
    shown, next_cursor = cut_page([row for row, _ in pairs], limit=limit)
    return Page(items=present_all(session, settings, pairs[: len(shown)]), next_cursor=next_cursor)


def present_all(
    session: Session, settings: Settings, pairs: Sequence[tuple[Endpoint, Job]], *, has_detail: bool = False
) -> list[EndpointRead]:
    """Present several endpoints with a fixed number of queries."""
    read = presentation.present_all(session, jobs=[job for _, job in pairs], has_detail=has_detail)
    wanted = {job.model_id for _, job in pairs} | {row.target_model_id for row, _ in pairs} - {None}
    models = map_model_names(session, model_ids=[each for each in wanted if each])
    named = {each for row, _ in pairs for each in (row.target_job_id, row.preempted_by) if each}
    names = {
        **map_job_names(session, job_ids=named),
        **repository.map_names(session, endpoint_ids={each for each in named if is_id(each, prefix="ep")}),
    }
    kept_up = repository.list_jobs_with_adapters(session, job_ids={job.id for _, job in pairs})
    return [
        _present(settings, row, job, each, models, names, has_adapters=job.id in kept_up)
        for (row, job), each in zip(pairs, read, strict=True)
    ]


def _present(
    settings: Settings,
    row: Endpoint,
    job: Job,
    read: JobRead,
    models: dict[str, str],
    names: dict[str, str],
    *,
    has_adapters: bool,
) -> EndpointRead:
    state, source = service.state_of(row, job), row.target_job_id
    model_id, shares = row.target_model_id or job.model_id, row.engine_id is not None
    is_there = source in names if source else model_id in models
    idle_s = row.idle_timeout_s or settings.endpoint_idle_s
    since = None if has_adapters and not shares else service.idle_since(row, job)
    is_up = state in {EndpointState.STARTING, EndpointState.READY}
    return EndpointRead(
        id=row.id,
        name=row.name,
        kind="checkpoint" if source else "model",
        model=NamedReference(id=model_id, name=models.get(model_id)),
        job=NamedReference(id=source, name=names.get(source)) if source else None,
        step=row.target_step,
        run_id=job.id,
        attempt=job.attempt,
        shares_engine_of=NamedReference(id=job.model_id, name=models.get(job.model_id))
        if shares and not row.is_takeover
        else None,
        sharing_refusal=_present_refusal(row),
        state=state,
        phase=job.phase if state == EndpointState.STARTING else None,
        state_since=_since(row, job, state),
        queue_position=read.queue_position,
        slots=0 if shares else job.gpus,
        max_model_len=row.context_length if state == EndpointState.READY else row.max_model_len,
        idle_timeout_s=idle_s,
        stops_at=since + timedelta(seconds=idle_s) if since else None,
        last_used_at=row.last_used_at,
        load=service.read_load(row, job),
        requests=read_requests(row.id),
        preemptible=row.is_preemptible,
        preempted_by=_preempted_by(row, job, state, names),
        stopped_by=_stopped_by(row, job, state),
        failure=None if shares and state != EndpointState.FAILED else read.failure,
        created_at=row.created_at,
        can_start=state in _OVER and is_there,
        can_stop=is_up if shares else job.state in STOPPABLE,
    )


def _present_refusal(row: Endpoint) -> SharingRefusal | None:
    until = sharing.refused_until(row)
    if row.refusal is None or until is None or until <= utc_now():
        return None
    return SharingRefusal(reason=row.refusal, retry_at=until)


def _preempted_by(
    row: Endpoint, job: Job, state: EndpointState, names: dict[str, str]
) -> NamedReference | None:
    is_over = state in {EndpointState.STOPPING, EndpointState.STOPPED}
    if not is_over or job.cause != service.PREEMPTED or row.preempted_by is None:
        return None
    if row.engine_id is not None and row.asked_attempt != job.attempt:
        return None  # it was unloaded before its engine made room
    return NamedReference(id=row.preempted_by, name=names.get(row.preempted_by))


def _stopped_by(
    row: Endpoint, job: Job, state: EndpointState
) -> Literal["idle", "request", "training", "endpoint", "replaced"] | None:
    if state != EndpointState.STOPPED:
        return None
    if row.engine_id is not None and row.asked_attempt != job.attempt:
        # Without a word: the engine was started anew since, and the adapter has not been asked for.
        return _UNLOADED_FOR.get(row.unloaded_for or "")
    if job.cause == REPLACED:
        return "replaced"
    if job.cause == service.PREEMPTED:
        return "endpoint" if is_id(row.preempted_by or "", prefix="ep") else "training"
    return "idle" if job.cause == service.IDLE else "request"


def _since(row: Endpoint, job: Job, state: EndpointState) -> datetime:
    shares = row.engine_id is not None
    if shares and state == EndpointState.STOPPED and row.unloaded_at is not None:
        return row.unloaded_at
    if shares and state == EndpointState.STARTING and row.asked_at is not None:
        return row.asked_at
    chosen = {
        EndpointState.READY: row.ready_at,
        EndpointState.STOPPING: job.stop_requested_at,
        EndpointState.STOPPED: job.finished_at,
        EndpointState.FAILED: job.finished_at,
    }
    return chosen.get(state) or job.queued_at
