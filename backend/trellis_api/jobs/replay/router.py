"""``/jobs/replay``: runs that are repeated from their manifests."""

from fastapi import APIRouter, BackgroundTasks
from trellis_contracts import tasks as task_names

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.jobs import presentation
from trellis_api.jobs.replay import service
from trellis_api.jobs.replay.schemas import ReplayCreate, ReplayPlan
from trellis_api.jobs.schemas import JobRead

router = APIRouter(
    prefix="/jobs/replay",
    tags=["jobs"],
    responses={401: ERROR_RESPONSES[401], 422: ERROR_RESPONSES[422]},
)


@router.post("/preview", summary="Plan the repetition of a run")
def preview_replay(body: ReplayCreate, session: ReadSession, settings: SettingsDep) -> ReplayPlan:
    """Find model and data by ID or content hash, and list what differs. Launches nothing."""
    return service.plan(session, settings, wanted=body)


@router.post(
    "", status_code=201, summary="Repeat a run from its manifest", responses={409: ERROR_RESPONSES[409]}
)
def replay_job(
    body: ReplayCreate,
    background: BackgroundTasks,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
) -> JobRead:
    """Queue the run again. If something is missing, 422 `cannot_replay` lists it in `details`."""
    with database.read() as session:  # composing takes seconds, in which nobody else could write
        planned = service.plan(session, settings, wanted=body)
    with database.write() as session:
        job = service.replay(session, settings, wanted=body, planned=planned)
        found = presentation.present(session, job=job)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return found
