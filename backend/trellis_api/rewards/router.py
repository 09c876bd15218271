"""``/rewards``: the catalogue, persons' own reward functions, and dry runs."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts.tasks import RUN_DRY_RUNS

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.jobs.dependencies import TRY_TEMPLATES
from trellis_api.rewards import availability, service
from trellis_api.rewards.files import FILES
from trellis_api.rewards.names import with_ids
from trellis_api.rewards.schemas import (
    DryRunCreate,
    DryRunRead,
    RewardFileCreate,
    RewardFileDetail,
    RewardFileRead,
    RewardKindList,
    RewardKindRead,
)

router = APIRouter(prefix="/rewards", tags=["rewards"], responses=ERROR_RESPONSES)

Cursor = Annotated[str | None, Query(max_length=400)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]


@router.get("")
def list_rewards(session: ReadSession, settings: SettingsDep) -> RewardKindList:
    """List every reward with its options, and why one cannot be used on this platform."""
    kinds = availability.list_kinds(session, settings)
    return RewardKindList(items=[RewardKindRead.model_validate(kind, from_attributes=True) for kind in kinds])


@router.get("/files")
def list_reward_files(
    session: ReadSession, cursor: Cursor = None, limit: Limit = DEFAULT_PAGE_SIZE
) -> Page[RewardFileRead]:
    """List uploaded reward functions, newest first."""
    return FILES.list(session, cursor=cursor, limit=limit)


@router.post("/files", status_code=201)
def create_reward_file(request: RewardFileCreate, session: WriteSession) -> RewardFileRead:
    """Upload a Python file. Its syntax is checked; it only runs sandboxed, in a job or dry run."""
    return RewardFileRead.model_validate(service.add_file(session, request=request))


@router.get("/files/{file_id}")
def read_reward_file(file_id: str, session: ReadSession) -> RewardFileDetail:
    """Return one uploaded file, with its code."""
    return RewardFileDetail.model_validate(FILES.get(session, file_id))


@router.delete("/files/{file_id}", status_code=204)
def delete_reward_file(file_id: str, session: WriteSession) -> None:
    """Delete a file; refused while unfinished work uses it."""
    service.delete_file(session, file_id=file_id)


@router.get("/dry-runs")
def list_dry_runs(
    session: ReadSession, cursor: Cursor = None, limit: Limit = DEFAULT_PAGE_SIZE
) -> Page[DryRunRead]:
    """List dry runs, newest first."""
    return service.list_dry_runs(session, cursor=cursor, limit=limit)


@router.post("/dry-runs", status_code=202, dependencies=[TRY_TEMPLATES])
def create_dry_run(
    request: DryRunCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DryRunRead:
    """Score probes on real rows (reference solution, empty, truncated, repeated ...) before a run."""
    dry_run = service.start_dry_run(session, settings, request=with_ids(session, request))
    tasks.send_later(background, RUN_DRY_RUNS)
    return service.present_dry_run(session, dry_run)


@router.get("/dry-runs/{dry_run_id}")
def read_dry_run(dry_run_id: str, session: ReadSession) -> DryRunRead:
    """Return one dry run: state and progress, and the result once it has succeeded."""
    return service.present_dry_run(session, service.get_dry_run(session, dry_run_id=dry_run_id))


@router.post("/dry-runs/{dry_run_id}/cancel")
def cancel_dry_run(dry_run_id: str, session: WriteSession) -> DryRunRead:
    """Cancel a queued or running dry run."""
    return service.present_dry_run(session, service.cancel_dry_run(session, dry_run_id=dry_run_id))


@router.delete("/dry-runs/{dry_run_id}", status_code=204)
def delete_dry_run(dry_run_id: str, session: WriteSession) -> None:
    """Delete a dry run; a running one is stopped."""
    service.delete_dry_run(session, dry_run_id=dry_run_id)
