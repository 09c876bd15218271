"""The checkpoints of a job: list, keep and remove."""

from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts import tasks as task_names

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from trellis_api.core.texts import NO_NUL
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.checkpoints.schemas import CheckpointPage, CheckpointRead, CheckpointUpdate
from trellis_api.jobs.dependencies import CHECKPOINT_CONFLICT, JOB_RESPONSES, JobId, Step

router = APIRouter(prefix="/jobs/{job_id}/checkpoints", tags=["checkpoints"], responses=JOB_RESPONSES)


@router.get("", summary="Checkpoints, newest first")
def list_checkpoints(
    job_id: JobId,
    session: ReadSession,
    settings: SettingsDep,
    best_by: Annotated[
        str | None,
        Query(max_length=256, pattern=NO_NUL, description="Metric that selects the best; default the job's."),
    ] = None,
    mode: Annotated[
        Literal["max", "min"] | None, Query(description="Default depends on the metric; min for a loss.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> CheckpointPage:
    """List the checkpoints of all attempts with the metrics of their steps; removed ones stay listed.

    ``best`` says which metric decided, and whether more of it was taken for better.
    """
    return checkpoints.list_page(
        session,
        job_id=job_id,
        data_root=settings.data_root,
        metric=best_by,
        mode=mode,
        cursor=cursor,
        limit=limit,
    )


@router.patch("/{step}", summary="Pin or unpin a checkpoint", responses=CHECKPOINT_CONFLICT)
def update_checkpoint(
    job_id: JobId,
    step: Step,
    body: CheckpointUpdate,
    background: BackgroundTasks,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
) -> CheckpointRead:
    """Pin or unpin a checkpoint.

    A pinned checkpoint is never pruned. An unpinned one may be pruned immediately.
    """
    checkpoints.set_kept(session, job_id=job_id, step=step, is_kept=body.is_kept)
    tasks.send_later(background, task_names.PRUNE)
    return checkpoints.read_one(session, job_id=job_id, step=step, data_root=settings.data_root)


@router.delete(
    "/{step}", status_code=204, summary="Remove a checkpoint's files", responses=CHECKPOINT_CONFLICT
)
def delete_checkpoint(
    job_id: JobId, step: Step, background: BackgroundTasks, session: WriteSession, tasks: TasksDep
) -> None:
    """Remove a checkpoint's files. It stays listed with its metrics. Refused while it is pinned or in use."""
    checkpoints.delete(session, job_id=job_id, step=step)
    tasks.send_later(background, task_names.PRUNE)
