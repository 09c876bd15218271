"""``/endpoints``: serve models and checkpoints."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Path, Query
from trellis_contracts import tasks as task_names

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.endpoints import presentation, service
from trellis_api.endpoints.schemas import EndpointRead, EndpointStart, EndpointUpdate
from trellis_api.evaluations.schemas import CheckpointTarget, ModelTarget
from trellis_api.jobs.dependencies import TRY_TEMPLATES, JobId

Responses = dict[int | str, dict[str, Any]]
router = APIRouter(tags=["endpoints"], responses={401: ERROR_RESPONSES[401]})
FOUND: Responses = {404: ERROR_RESPONSES[404]}
CONFLICT: Responses = {**FOUND, 409: ERROR_RESPONSES[409]}
EndpointId = Annotated[str, Path(description="Endpoint ID.", pattern=id_pattern("ep"))]
ModelId = Annotated[str, Path(description="ID or name of the model.")]
Step = Annotated[int, Path(ge=0, le=2**53, description="Checkpoint step.")]


@router.post(
    "/models/{model_id}/endpoint",
    status_code=202,
    summary="Serve a model",
    responses=CONFLICT,
    dependencies=[TRY_TEMPLATES],
)
def serve_model(
    model_id: ModelId,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    body: EndpointStart | None = None,
) -> EndpointRead:
    """Start its endpoint. If it is already starting or ready, returns it unchanged."""
    pair = service.start(
        session, settings, target=ModelTarget(model=model_id), request=body or EndpointStart()
    )
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, settings, pair)


@router.post(
    "/jobs/{job_id}/checkpoints/{step}/endpoint",
    status_code=202,
    summary="Serve a checkpoint",
    responses=CONFLICT,
    dependencies=[TRY_TEMPLATES],
)
def serve_checkpoint(
    job_id: JobId,
    step: Step,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    body: EndpointStart | None = None,
) -> EndpointRead:
    """Serve a saved checkpoint. Its weights are consolidated first; adapters are merged into their base."""
    target = CheckpointTarget(job=job_id, step=step)
    pair = service.start(session, settings, target=target, request=body or EndpointStart())
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, settings, pair)


@router.get("/endpoints", summary="List endpoints, newest first")
def list_endpoints(
    session: ReadSession,
    settings: SettingsDep,
    is_up: Annotated[
        bool | None, Query(description="Starting, ready or stopping; or stopped or failed.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[EndpointRead]:
    """List one endpoint per model or checkpoint that has been served."""
    return presentation.list_page(session, settings, is_up=is_up, cursor=cursor, limit=limit)


@router.get("/endpoints/{endpoint_id}", summary="Get an endpoint", responses=FOUND)
def read_endpoint(endpoint_id: EndpointId, session: ReadSession, settings: SettingsDep) -> EndpointRead:
    """Read its state; if it failed, with the last lines of output."""
    pair = service.get_endpoint(session, endpoint_id=endpoint_id)
    return presentation.present(session, settings, pair)


@router.patch("/endpoints/{endpoint_id}", summary="Edit an endpoint", responses=FOUND)
def update_endpoint(
    endpoint_id: EndpointId,
    body: EndpointUpdate,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
) -> EndpointRead:
    """Change the fields in the request, at once. Its state stays as it is: nothing is loaded or stopped."""
    pair = service.update(session, endpoint_id=endpoint_id, request=body)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)  # a training may have waited for its slot
    return presentation.present(session, settings, pair)


@router.delete("/endpoints/{endpoint_id}", summary="Stop an endpoint", responses=FOUND)
def stop_endpoint(
    endpoint_id: EndpointId,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
) -> EndpointRead:
    """Stop it after a few seconds for in-flight requests. No effect if it has stopped or failed."""
    row, job = service.stop(session, endpoint_id=endpoint_id)
    if row.engine_id is None:
        tasks.send_later(background, task_names.STOP, job.id)
    return presentation.present(session, settings, (row, job))
