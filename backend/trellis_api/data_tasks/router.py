"""``/data-tasks``: long work on data, whatever asked for it."""

from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Query
from trellis_contracts.data_tasks import DataTaskKind, DataTaskState

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.texts import QueryText
from trellis_api.data_tasks import service
from trellis_api.data_tasks.schemas import DataTaskRead
from trellis_api.names.resolve import DATASETS, find_filter_id

router = APIRouter(prefix="/data-tasks", tags=["data tasks"], responses=ERROR_RESPONSES)


@router.get("")
def list_data_tasks(
    session: ReadSession,
    dataset: Annotated[
        QueryText | None,
        Query(description="That reads or makes this dataset, by ID or name."),
    ] = None,
    kind: Annotated[list[DataTaskKind] | None, Query()] = None,
    state: Annotated[list[DataTaskState] | None, Query()] = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[DataTaskRead]:
    """List tasks, newest first; results are left out of lists."""
    dataset_id = find_filter_id(session, DATASETS, dataset, field="dataset")
    return service.list_tasks(
        session, dataset_id=dataset_id, kinds=kind, states=state, cursor=cursor, limit=limit
    )


@router.get("/{task_id}")
def read_data_task(task_id: str, session: ReadSession) -> DataTaskRead:
    """Return one task: state and progress, and the result once it has succeeded."""
    return service.present(session, service.get_task(session, task_id=task_id))


@router.post("/{task_id}/cancel")
def cancel_data_task(task_id: str, session: WriteSession) -> DataTaskRead:
    """Cancel a queued or running task; its progress is kept for a retry."""
    return service.present(session, service.cancel(session, task_id=task_id))


@router.post("/{task_id}/retry")
def retry_data_task(
    task_id: str, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> DataTaskRead:
    """Retry a failed or cancelled task; it continues where it stopped."""
    task = service.retry(session, task_id=task_id)
    tasks.send_later(background, service.message_for(task))
    return service.present(session, task)


@router.delete("/{task_id}", status_code=204)
def delete_data_task(task_id: str, session: WriteSession, settings: SettingsDep) -> None:
    """Delete a finished task with its report and quarantined rows."""
    service.delete(session, settings, task_id=task_id)
