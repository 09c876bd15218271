"""A checkpoint of a job as a model."""

from fastapi import APIRouter, BackgroundTasks
from trellis_contracts import tasks as task_names

from trellis_api.core.dependencies import SettingsDep, TasksDep, WriteSession
from trellis_api.jobs import presentation
from trellis_api.jobs.dependencies import CHECKPOINT_CONFLICT, JOB_RESPONSES, JobId, Step
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.schemas import ExportCreate, JobRead

router = APIRouter(prefix="/jobs/{job_id}/checkpoints", tags=["checkpoints"], responses=JOB_RESPONSES)


@router.post(
    "/{step}/export", status_code=201, summary="Export a checkpoint as a model", responses=CHECKPOINT_CONFLICT
)
def export_checkpoint(
    job_id: JobId,
    step: Step,
    body: ExportCreate,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
) -> JobRead:
    """Start a job of kind export, which needs no slot. When it has succeeded, the model is registered."""
    job = exports.request_export(session, job_id=job_id, step=step, request=body, settings=settings)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, job=job)
