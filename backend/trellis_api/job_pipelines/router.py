"""``/job-pipelines``: stages that need each other, each an ordinary job."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts.tasks import ADVANCE_JOB_PIPELINES, STOP

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.job_pipelines import service
from trellis_api.job_pipelines.documents import check_document, with_ids
from trellis_api.job_pipelines.presentation import present
from trellis_api.job_pipelines.schemas import (
    JobPipelineChecked,
    JobPipelineCreate,
    JobPipelineRead,
    JobPipelineTemplateList,
    JobPipelineText,
)
from trellis_api.job_pipelines.templates import list_templates
from trellis_api.jobs.dependencies import TRY_TEMPLATES

router = APIRouter(prefix="/job-pipelines", tags=["job pipelines"], responses=ERROR_RESPONSES)


@router.get("/templates")
def list_job_pipeline_templates() -> JobPipelineTemplateList:
    """List pipeline templates."""
    return JobPipelineTemplateList(items=list_templates())


@router.get("")
def list_job_pipelines(
    session: ReadSession,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[JobPipelineRead]:
    """List pipelines, newest first."""
    return service.list_page(session, cursor=cursor, limit=limit)


@router.post("", status_code=201, dependencies=[TRY_TEMPLATES])
def create_job_pipeline(
    request: JobPipelineCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> JobPipelineRead:
    """Create a pipeline.

    All stages are validated before anything runs; stages without dependencies start within seconds.
    """
    pipeline = service.create(session, settings, request=with_ids(session, request))
    tasks.send_later(background, ADVANCE_JOB_PIPELINES)
    return present(session, pipeline)


@router.post("/check")
def check_job_pipeline(
    body: JobPipelineText, session: ReadSession, settings: SettingsDep
) -> JobPipelineChecked:
    """Parse and validate a YAML text, with problems by line; nothing is created."""
    return check_document(session, settings, text=body.yaml)


@router.get("/{job_pipeline_id}")
def read_job_pipeline(job_pipeline_id: str, session: ReadSession) -> JobPipelineRead:
    """Return one pipeline with its stages."""
    return present(session, service.get_pipeline(session, pipeline_id=job_pipeline_id))


@router.post("/{job_pipeline_id}/start")
def start_job_pipeline(
    job_pipeline_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> JobPipelineRead:
    """Run or rerun a pipeline; stages whose inputs did not change are skipped."""
    pipeline = service.start(session, pipeline_id=job_pipeline_id)
    tasks.send_later(background, ADVANCE_JOB_PIPELINES)
    return present(session, pipeline)


@router.post("/{job_pipeline_id}/stop")
def stop_job_pipeline(
    job_pipeline_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> JobPipelineRead:
    """Stop running stages and start no more; starting the pipeline again continues from there."""
    pipeline, job_ids = service.stop(session, pipeline_id=job_pipeline_id)
    for job_id in job_ids:
        tasks.send_later(background, STOP, job_id)
    return present(session, pipeline)


@router.post("/{job_pipeline_id}/stages/{stage_id}/rerun")
def rerun_stage(
    job_pipeline_id: str, stage_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> JobPipelineRead:
    """Rerun a stage and all stages that depend on it, even if their inputs did not change."""
    pipeline = service.rerun(session, pipeline_id=job_pipeline_id, stage_id=stage_id)
    tasks.send_later(background, ADVANCE_JOB_PIPELINES)
    return present(session, pipeline)


@router.delete("/{job_pipeline_id}", status_code=204)
def delete_job_pipeline(job_pipeline_id: str, session: WriteSession) -> None:
    """Delete a pipeline; refused while it runs. Its jobs, models and evaluations stay."""
    service.delete(session, pipeline_id=job_pipeline_id)
