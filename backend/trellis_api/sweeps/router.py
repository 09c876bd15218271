"""``/sweeps``: one training many times, with parameters or seeds that vary."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts.tasks import ADVANCE_SWEEPS, STOP

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.jobs.dependencies import TRY_TEMPLATES
from trellis_api.sweeps import checking, service
from trellis_api.sweeps.documents import check_document, with_ids
from trellis_api.sweeps.presentation import present
from trellis_api.sweeps.schemas import (
    SweepChecked,
    SweepCreate,
    SweepPreview,
    SweepRead,
    SweepSummary,
    SweepText,
)

router = APIRouter(prefix="/sweeps", tags=["sweeps"], responses=ERROR_RESPONSES)


@router.get("")
def list_sweeps(
    session: ReadSession,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[SweepSummary]:
    """List sweeps, newest first."""
    return service.list_page(session, cursor=cursor, limit=limit)


@router.post("", status_code=201, dependencies=[TRY_TEMPLATES])
def create_sweep(
    request: SweepCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> SweepRead:
    """Create a sweep.

    The bounds of every range are validated before anything runs; runs start within seconds.
    """
    sweep = service.create(session, settings, request=with_ids(session, request))
    tasks.send_later(background, ADVANCE_SWEEPS)
    return present(session, sweep)


@router.post("/preview")
def preview_sweep(request: SweepCreate, session: ReadSession, settings: SettingsDep) -> SweepPreview:
    """Preview and validate a sweep; nothing is saved."""
    return checking.present_plan(checking.make_plan(session, settings, request=with_ids(session, request)))


@router.post("/check")
def check_sweep(body: SweepText, session: ReadSession, settings: SettingsDep) -> SweepChecked:
    """Parse and validate a YAML text, with problems by line; nothing is created."""
    return check_document(session, settings, text=body.yaml)


@router.get("/{sweep_id}")
def read_sweep(sweep_id: str, session: ReadSession) -> SweepRead:
    """Return one sweep with its runs, the best ones and the importance of its parameters."""
    return present(session, service.get_sweep(session, sweep_id=sweep_id))


@router.post("/{sweep_id}/stop")
def stop_sweep(
    sweep_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> SweepRead:
    """Start no more runs; running ones save a checkpoint and exit. It can be resumed."""
    sweep, job_ids = service.stop(session, sweep_id=sweep_id)
    for job_id in job_ids:
        tasks.send_later(background, STOP, job_id)
    tasks.send_later(background, ADVANCE_SWEEPS)
    return present(session, sweep)


@router.post("/{sweep_id}/resume")
def resume_sweep(
    sweep_id: str,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> SweepRead:
    """Resume its stopped runs and start the next ones."""
    sweep = service.resume(session, settings, sweep_id=sweep_id)
    tasks.send_later(background, ADVANCE_SWEEPS)
    return present(session, sweep)


@router.delete("/{sweep_id}", status_code=204)
def delete_sweep(sweep_id: str, session: WriteSession) -> None:
    """Delete a sweep; refused while it is running. Its jobs are kept."""
    service.delete(session, sweep_id=sweep_id)
