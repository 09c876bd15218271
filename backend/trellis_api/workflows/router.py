"""``/workflows``: persons' own agents, for the recipe ``tune``."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts.tasks import INSTALL_WORKFLOWS
from trellis_contracts.workflow_states import WorkflowState

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.workflows import presentation, service
from trellis_api.workflows.files import FILES
from trellis_api.workflows.schemas import WorkflowCreate, WorkflowDetail, WorkflowListed, WorkflowRead

router = APIRouter(prefix="/workflows", tags=["workflows"], responses=ERROR_RESPONSES)

Cursor = Annotated[str | None, Query(max_length=400)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]


@router.get("")
def list_workflows(
    session: ReadSession, cursor: Cursor = None, limit: Limit = DEFAULT_PAGE_SIZE
) -> Page[WorkflowListed]:
    """List uploaded workflows, newest first, with what they are used by."""
    return presentation.list_page(session, cursor=cursor, limit=limit)


@router.post("", status_code=201)
def create_workflow(
    request: WorkflowCreate,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> WorkflowRead:
    """Upload a Python file or an archive. Functions are checked; nothing is run yet."""
    unpacked = service.unpack_upload(settings, request=request)
    with database.write() as session:
        file = service.add_workflow(session, settings, request=request, unpacked=unpacked)
        made = WorkflowRead.model_validate(file)
    if made.state == WorkflowState.QUEUED:
        tasks.send_later(background, INSTALL_WORKFLOWS)
    return made


@router.post("/{workflow_id}/retry")
def retry_workflow(
    workflow_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> WorkflowRead:
    """Retry a failed installation of requirements."""
    again = WorkflowRead.model_validate(service.retry(session, workflow_id=workflow_id))
    tasks.send_later(background, INSTALL_WORKFLOWS)
    return again


@router.get("/{workflow_id}")
def read_workflow(workflow_id: str, session: ReadSession) -> WorkflowDetail:
    """Return one uploaded workflow, with its code."""
    return WorkflowDetail.model_validate(FILES.get(session, workflow_id))


@router.delete("/{workflow_id}", status_code=204)
def delete_workflow(workflow_id: str, session: WriteSession, settings: SettingsDep) -> None:
    """Delete a workflow; refused while unfinished work uses it."""
    service.delete_workflow(session, settings, workflow_id=workflow_id)
