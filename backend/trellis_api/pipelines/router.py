"""``/pipelines``: operators, saved pipelines, checks, previews and runs."""

from typing import Annotated, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, BackgroundTasks, Path, Query, Response
from sqlmodel import Session
from trellis_contracts.tasks import RUN_DATA_TASKS, RUN_PREVIEWS

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.texts import NO_NUL, QueryText
from trellis_api.data_tasks.schemas import DataTaskRead, Purpose
from trellis_api.names.resolve import DATASETS, find_filter_id, find_id
from trellis_api.pipelines import checking, kept_rows, operators, runs, service
from trellis_api.pipelines.schemas import (
    Clusters,
    DroppedRows,
    OperatorList,
    PipelineCheck,
    PipelineChecked,
    PipelineRead,
    PipelineSave,
    PipelineVersionList,
    PreviewCreate,
    RunCreate,
    RunRead,
)

router = APIRouter(prefix="/pipelines", tags=["pipelines"], responses=ERROR_RESPONSES)

Cursor = Annotated[str | None, Query(max_length=400)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]
Step = Annotated[int, Path(ge=0, le=1000)]
Offset = Annotated[int, Query(ge=0, le=2**62)]


_Request = TypeVar("_Request", PipelineCheck, PreviewCreate, RunCreate)


def _with_id(session: Session, request: _Request) -> _Request:
    """Return the request with the ID of the dataset that it calls by name."""
    if request.dataset is None:
        return request
    dataset = find_id(session, DATASETS, request.dataset, field="dataset")
    return request.model_copy(update={"dataset": dataset})


@router.get("/operators")
def list_operators() -> OperatorList:
    """List every operator with the schema of its parameters."""
    return operators.list_operators()


@router.post("/validate")
def validate_pipeline(request: PipelineCheck, session: ReadSession, settings: SettingsDep) -> PipelineChecked:
    """Return everything that is wrong with a pipeline, with a dataset also with its columns."""
    return checking.validate(session, settings, request=_with_id(session, request))


@router.post("/preview", status_code=202)
def preview_pipeline(
    request: PreviewCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DataTaskRead:
    """Preview a pipeline on a few rows: the task's result shows each row after each step."""
    task = runs.start_preview(session, settings, request=_with_id(session, request))
    tasks.send_later(background, RUN_PREVIEWS)
    return task


@router.get("")
def list_pipelines(
    session: ReadSession, cursor: Cursor = None, limit: Limit = DEFAULT_PAGE_SIZE
) -> Page[PipelineRead]:
    """List saved pipelines at their newest version, newest first."""
    return service.list_page(session, cursor=cursor, limit=limit)


@router.post("", status_code=201)
def save_pipeline(request: PipelineSave, session: WriteSession) -> PipelineRead:
    """Save a pipeline under a name."""
    return service.save(session, request=request)


@router.get("/runs")
def list_runs(
    session: ReadSession,
    settings: SettingsDep,
    dataset: Annotated[QueryText | None, Query(description="Of this dataset, by ID or name.")] = None,
    version: Annotated[str | None, Query(max_length=64, pattern=NO_NUL)] = None,
    pipeline: Annotated[str | None, Query(max_length=32, pattern=NO_NUL)] = None,
    purpose: Annotated[list[Purpose] | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_PAGE_SIZE,
) -> Page[RunRead]:
    """List runs, newest first; reports are left out of lists."""
    return runs.list_page(
        session,
        settings,
        dataset=find_filter_id(session, DATASETS, dataset, field="dataset"),
        version=version,
        pipeline=pipeline,
        purposes=purpose,
        cursor=cursor,
        limit=limit,
    )


@router.post("/runs", status_code=202)
def start_run(
    request: RunCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> RunRead:
    """Run a pipeline on a version; a worker executes it."""
    run = runs.start_run(session, settings, request=_with_id(session, request))
    tasks.send_later(background, RUN_DATA_TASKS)
    return run


@router.get("/runs/{task_id}")
def read_run(task_id: str, session: ReadSession, settings: SettingsDep) -> RunRead:
    """Return one run, with its report once it has succeeded.

    (Cancel and retry: ``/data-tasks/{task_id}``.)
    """
    return runs.present(session, settings, runs.get_run(session, task_id=task_id))


@router.get("/runs/{task_id}/steps/{step}/dropped")
def read_dropped_rows(
    task_id: str,
    step: Step,
    session: ReadSession,
    settings: SettingsDep,
    offset: Offset = 0,
    limit: Limit = DEFAULT_PAGE_SIZE,
) -> DroppedRows:
    """Return rows that a step (from 0) dropped, with the reason of each."""
    return kept_rows.read_dropped(session, settings, task_id=task_id, step=step, offset=offset, limit=limit)


@router.get("/runs/{task_id}/steps/{step}/clusters")
def read_clusters(
    task_id: str,
    step: Step,
    session: ReadSession,
    settings: SettingsDep,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Clusters:
    """Return clusters of duplicates that a step (from 0) found, the largest first."""
    return kept_rows.read_clusters(session, settings, task_id=task_id, step=step, offset=offset, limit=limit)


@router.get("/{pipeline_id}")
def read_pipeline(
    pipeline_id: str, session: ReadSession, version: Annotated[int | None, Query(ge=1)] = None
) -> PipelineRead:
    """Return one saved pipeline; the newest version by default."""
    return service.read(session, pipeline_id=pipeline_id, number=version)


@router.get(
    "/{pipeline_id}/yaml",
    response_class=Response,
    responses={200: {"content": {"application/yaml": {"schema": {"type": "object"}}}}},
)
def export_pipeline(
    pipeline_id: str, session: ReadSession, version: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    """Return the pipeline as YAML, as `trellis data run` reads it."""
    found = service.read(session, pipeline_id=pipeline_id, number=version)
    name = quote(f"{found.name}.yaml", safe="")
    return Response(
        found.yaml,
        media_type="application/yaml",
        headers={"Content-Disposition": f"attachment; filename=\"pipeline.yaml\"; filename*=UTF-8''{name}"},
    )


@router.get("/{pipeline_id}/versions")
def list_pipeline_versions(pipeline_id: str, session: ReadSession) -> PipelineVersionList:
    """List versions of the pipeline, newest first."""
    return PipelineVersionList(items=service.list_versions(session, pipeline_id=pipeline_id))


@router.post("/{pipeline_id}/versions", status_code=201)
def save_pipeline_version(pipeline_id: str, request: PipelineSave, session: WriteSession) -> PipelineRead:
    """Save a changed pipeline as its next version; an equivalent one creates none."""
    return service.save_version(session, pipeline_id=pipeline_id, request=request)


@router.delete("/{pipeline_id}", status_code=204)
def delete_pipeline(pipeline_id: str, session: WriteSession) -> None:
    """Delete a saved pipeline; its runs keep their copy."""
    service.delete(session, pipeline_id=pipeline_id)
