"""Jobs: create, look up, stop, resume, clone, delete."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts import tasks as task_names
from trellis_contracts.states import JobState

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from trellis_api.core.texts import NO_NUL, QueryText
from trellis_api.jobs import editing, presentation, service, submit
from trellis_api.jobs.dependencies import JOB_RESPONSES, TRY_TEMPLATES, JobId
from trellis_api.jobs.errors import SortNeedsMetric
from trellis_api.jobs.fields import service as fields
from trellis_api.jobs.fields.grouping import JobGrouping
from trellis_api.jobs.fields.schemas import JobFieldsRead
from trellis_api.jobs.fields.service import MAX_FIELDS, FieldText
from trellis_api.jobs.fields.sorting import BY_METRIC, Direction, JobOrder, JobSort
from trellis_api.jobs.names import with_ids
from trellis_api.jobs.queue import service as queue
from trellis_api.jobs.queue.schemas import JobQueue, QueueMove
from trellis_api.jobs.reporting.requests import refuse_unsendable
from trellis_api.jobs.repository import JobFilter
from trellis_api.jobs.schemas import (
    JobClone,
    JobCreate,
    JobKind,
    JobPage,
    JobPreview,
    JobRead,
    JobResume,
    JobUpdate,
)
from trellis_api.jobs.storage import check_storage
from trellis_api.jobs.sweep_names import FIND_SWEEP_ID
from trellis_api.monitoring.dependencies import ProbesDep
from trellis_api.names.resolve import DATASETS, ENVIRONMENTS, MODELS, WORKFLOWS, find_filter_id

Fields = Annotated[
    list[FieldText] | None,
    Query(
        alias="fields",
        description="Values to add to each training: `parameters.NAME`, `metrics.last.KEY`, "
        "`metrics.best.KEY` or `metrics.at.STEP.KEY`.",
        max_length=MAX_FIELDS,
    ),
]
router = APIRouter(prefix="/jobs", tags=["jobs"], responses={401: ERROR_RESPONSES[401]})
CONFLICT: dict[int | str, dict[str, Any]] = {**JOB_RESPONSES, 409: ERROR_RESPONSES[409]}


@router.post(
    "",
    status_code=201,
    summary="Launch a job",
    responses={409: ERROR_RESPONSES[409], 422: ERROR_RESPONSES[422]},
    dependencies=[TRY_TEMPLATES],
)
def create_job(
    body: JobCreate,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
) -> JobRead:
    """Launch a job. It is queued when this answers; it starts when its slots are free.

    Models, datasets, environments and agent code can be given by ID or by name.
    """
    refuse_unsendable(settings, body.report_to)
    job = submit.submit(session, request=with_ids(session, body), settings=settings)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, job=job)


@router.post("/preview", summary="Compose a job without launching it", responses={422: ERROR_RESPONSES[422]})
def preview_job(
    body: JobCreate, session: ReadSession, settings: SettingsDep, probes: ProbesDep
) -> JobPreview:
    """Return the engine's configuration, the command, and everything that is wrong with the request."""
    measured, _ = probes.machine()
    return submit.preview(session, request=with_ids(session, body), settings=settings, measured=measured)


@router.get("", summary="List jobs, newest first or by a column", responses={422: ERROR_RESPONSES[422]})
def list_jobs(
    session: ReadSession,
    settings: SettingsDep,
    state: Annotated[list[JobState] | None, Query(description="Any of these states.")] = None,
    kind: Annotated[JobKind | None, Query(description="Of this kind; default all.")] = None,
    recipe: Annotated[str | None, Query(pattern=NO_NUL)] = None,
    tag: Annotated[str | None, Query(pattern=NO_NUL)] = None,
    text: Annotated[
        QueryText | None,
        Query(description="Part of the name, the id or a tag."),
    ] = None,
    has_alarms: Annotated[bool | None, Query(description="With, or without, an active alarm.")] = None,
    starred: Annotated[bool | None, Query(description="With, or without, a star.")] = None,
    environment: Annotated[
        QueryText | None,
        Query(description="Whose agents work in this one, by ID or name."),
    ] = None,
    workflow: Annotated[
        QueryText | None,
        Query(description="That train this agent code, by ID or name."),
    ] = None,
    sweep: Annotated[QueryText | None, Query(description="Runs of this sweep, by ID or name.")] = None,
    group: Annotated[QueryText | None, Query(description="Jobs of this group.")] = None,
    model: Annotated[
        QueryText | None,
        Query(description="That train, evaluate or export this model, by ID or name."),
    ] = None,
    dataset: Annotated[
        QueryText | None, Query(description="That train on this dataset, by ID or name.")
    ] = None,
    group_by: Annotated[
        JobGrouping | None,
        Query(
            description="List jobs in groups, those without a value last; `sort` and `order` hold within "
            "each. A job with several tags is in the group of its first."
        ),
    ] = None,
    sort: Annotated[
        JobSort | FieldText,
        Query(description="Column, or a field as in `fields`; jobs without a value come last."),
    ] = JobSort.CREATED,
    order: Annotated[Direction, Query(description="Ascending or descending.")] = "desc",
    metric: Annotated[
        str | None,
        Query(
            description="Key of the metric to show and to sort by; default each job's headline metric.",
            min_length=1,
            max_length=256,
            pattern=NO_NUL,
        ),
    ] = None,
    field: Fields = None,
    cursor: Annotated[str | None, Query(max_length=5200)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> JobPage:
    """List the jobs that match all given filters. A cursor is only valid for the same order."""
    if sort in BY_METRIC and metric is None:
        raise SortNeedsMetric(f"To sort by {sort}, set `metric` to the metric's key.")
    parameters = {
        "environment": find_filter_id(session, ENVIRONMENTS, environment, field="environment"),
        "workflow": find_filter_id(session, WORKFLOWS, workflow, field="workflow"),
    }
    wanted = JobFilter(
        states=tuple(state or ()),
        kind=kind,
        recipe=recipe,
        tag=tag,
        text=text,
        has_alarms=has_alarms,
        is_starred=starred,
        sweep=FIND_SWEEP_ID(session, sweep),
        group=group,
        model=find_filter_id(session, MODELS, model, field="model"),
        dataset=find_filter_id(session, DATASETS, dataset, field="dataset"),
        params=tuple((parameter, value) for parameter, value in parameters.items() if value is not None),
    )
    by = JobOrder(sort if isinstance(sort, JobSort) else fields.parse_field(sort), order, metric, group_by)
    shown = fields.parse_fields(field)
    return presentation.list_page(
        session,
        wanted=wanted,
        order=by,
        fields=shown,
        price=settings.slot_price,
        cursor=cursor,
        limit=limit,
    )


@router.get("/queue", summary="List the queue in launch order")
def read_queue(session: ReadSession, settings: SettingsDep) -> JobQueue:
    """Return at most 200 jobs, each with its expected start."""
    return queue.read(session, settings)


@router.post(
    "/{job_id}/move",
    summary="Move a queued job within the queue",
    responses={**CONFLICT, 422: ERROR_RESPONSES[422]},
)
def move_job(job_id: JobId, body: QueueMove, session: WriteSession, settings: SettingsDep) -> JobQueue:
    """Move a queued job. Its priority changes only where it must: to that of its new neighbors."""
    queue.move(session, job_id=job_id, before=body.before)
    return queue.read(session, settings)


@router.get("/fields", summary="List fields to show as columns of jobs")
def list_job_fields(session: ReadSession) -> JobFieldsRead:
    """List parameters and metrics of the newest 200 trainings."""
    return fields.list_offered(session)


@router.get("/{job_id}", summary="Read a job", responses={**JOB_RESPONSES, 422: ERROR_RESPONSES[422]})
def read_job(
    job_id: JobId,
    session: ReadSession,
    settings: SettingsDep,
    metric: Annotated[
        str | None,
        Query(
            description="Key of the metric to show; default the job's headline metric.",
            min_length=1,
            max_length=256,
            pattern=NO_NUL,
        ),
    ] = None,
    field: Fields = None,
) -> JobRead:
    """Return a job, with the last lines of output if it failed."""
    job = service.get_job(session, job_id=job_id)
    shown = fields.parse_fields(field)
    return presentation.present_measured(
        session, job=job, metric=metric, fields=shown, price=settings.slot_price
    )


@router.patch(
    "/{job_id}",
    summary="Rename, annotate, tag or star a job",
    responses={**CONFLICT, 422: ERROR_RESPONSES[422]},
)
def update_job(job_id: JobId, body: JobUpdate, session: WriteSession) -> JobRead:
    """Change only the given fields; the priority only while the job is queued."""
    job = editing.update(session, job_id=job_id, changes=body)
    return presentation.present(session, job=job, has_detail=True)


@router.post("/{job_id}/stop", summary="Stop a job at a checkpoint", responses=CONFLICT)
def stop_job(job_id: JobId, background: BackgroundTasks, session: WriteSession, tasks: TasksDep) -> JobRead:
    """Stop a job. A queued job is stopped immediately; a running one saves a checkpoint and exits."""
    job = service.request_stop(session, job_id=job_id)
    tasks.send_later(background, task_names.STOP, job_id)
    return presentation.present(session, job=job)


@router.post("/{job_id}/resume", summary="Continue from a checkpoint", responses=CONFLICT)
def resume_job(
    job_id: JobId,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    body: JobResume | None = None,
) -> JobRead:
    """Resume a job from a checkpoint. The same job gets a new attempt; its step numbers continue."""
    check_storage(settings)
    wanted = body or JobResume()
    job = service.resume(
        session, job_id=job_id, data_root=settings.data_root, checkpoint_step=wanted.checkpoint_step
    )
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, job=job)


@router.post(
    "/{job_id}/clone",
    status_code=201,
    summary="Launch a copy",
    responses={**CONFLICT, 422: ERROR_RESPONSES[422]},
    dependencies=[TRY_TEMPLATES],
)
def clone_job(
    job_id: JobId,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    body: JobClone | None = None,
) -> JobRead:
    """Launch a new job with the same request and the given changes."""
    job = submit.clone(session, job_id=job_id, changes=body or JobClone(), settings=settings)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, job=job)


@router.delete("/{job_id}", status_code=204, summary="Delete a job and its files", responses=CONFLICT)
def delete_job(job_id: JobId, background: BackgroundTasks, session: WriteSession, tasks: TasksDep) -> None:
    """Delete a job; refused while it is active."""
    service.delete_job(session, job_id=job_id)
    tasks.send_later(background, task_names.PURGE)
