"""``/environments``: what agents work on, with tools that can be tried by hand."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts.tasks import CALL_TOOLS, MAKE_ENVIRONMENTS
from trellis_recipes.environments import environment_kinds

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.environments import service
from trellis_api.environments.presentation import present, present_call
from trellis_api.environments.schemas import (
    EnvironmentCreate,
    EnvironmentKindList,
    EnvironmentKindRead,
    EnvironmentRead,
    ToolCallCreate,
    ToolCallRead,
)

router = APIRouter(prefix="/environments", tags=["environments"], responses=ERROR_RESPONSES)
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]


@router.get("/kinds")
def list_environment_kinds() -> EnvironmentKindList:
    """List every kind of environment with its parameters."""
    kinds = environment_kinds().values()
    return EnvironmentKindList(
        items=[EnvironmentKindRead.model_validate(kind, from_attributes=True) for kind in kinds]
    )


@router.get("")
def list_environments(
    session: ReadSession,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Limit = DEFAULT_PAGE_SIZE,
) -> Page[EnvironmentRead]:
    """List environments, newest first."""
    return service.list_page(session, cursor=cursor, limit=limit)


@router.post("", status_code=202)
def create_environment(
    request: EnvironmentCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> EnvironmentRead:
    """Create an environment. A worker builds it; once it is ready, its rows are datasets of the platform.

    Where a parameter names files, they are looked at here and read by the worker.
    """
    environment = service.create(session, settings, request=request)
    tasks.send_later(background, MAKE_ENVIRONMENTS)
    return present(session, environment)


@router.get("/{environment_id}")
def read_environment(environment_id: str, session: ReadSession) -> EnvironmentRead:
    """Return one environment with its tools and datasets."""
    return service.read(session, environment_id=environment_id)


@router.post("/{environment_id}/retry")
def retry_environment(
    environment_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> EnvironmentRead:
    """Retry creating an environment that failed."""
    environment = service.retry(session, environment_id=environment_id)
    tasks.send_later(background, MAKE_ENVIRONMENTS)
    return present(session, environment)


@router.delete("/{environment_id}", status_code=204)
def delete_environment(environment_id: str, session: WriteSession, settings: SettingsDep) -> None:
    """Delete an environment; refused while unfinished work uses it. Its datasets are kept."""
    service.delete(session, settings, environment_id=environment_id)


@router.get("/{environment_id}/calls")
def list_tool_calls(environment_id: str, session: ReadSession, limit: Limit = 20) -> list[ToolCallRead]:
    """List the newest test calls, which were made by hand."""
    return service.list_calls(session, environment_id=environment_id, limit=limit)


@router.post("/{environment_id}/calls", status_code=202)
def call_tool(
    environment_id: str,
    request: ToolCallCreate,
    session: WriteSession,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> ToolCallRead:
    """Test a tool: a worker calls it as in an episode, with a time limit."""
    call = service.start_call(session, environment_id=environment_id, request=request)
    tasks.send_later(background, CALL_TOOLS)
    return present_call(call)


@router.get("/{environment_id}/calls/{call_id}")
def read_tool_call(environment_id: str, call_id: str, session: ReadSession) -> ToolCallRead:
    """Return a test call: its state and the tool response that the model would see."""
    return service.read_call(session, environment_id=environment_id, call_id=call_id)
