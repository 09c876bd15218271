"""Decides about data tasks: what waits, who works on it, and how it ends."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlmodel import Session
from trellis_contracts import tasks as messages
from trellis_contracts.data_tasks import (
    DATA_TASK_FINISHED,
    TASK_REQUEST,
    DataTaskKind,
    DataTaskProgress,
    DataTaskState,
    TaskFailure,
    TaskRequest,
)

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.redaction import redact
from trellis_api.core.settings import Settings
from trellis_api.core.transaction_files import remove_after_commit
from trellis_api.data_tasks import repository
from trellis_api.data_tasks.errors import (
    DataTaskFinished,
    DataTaskNotFound,
    DataTaskNotRetryable,
    DataTaskUnfinished,
)
from trellis_api.data_tasks.models import DataTask
from trellis_api.data_tasks.schemas import DataTaskRead, Purpose
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.repository import find_dataset, lock_dataset, map_dataset_names
from trellis_api.datasets.states import DatasetState

log = logging.getLogger(__name__)
#: Somebody waits in front of the screen for these; everything else may take hours.
INTERACTIVE = frozenset({DataTaskKind.PREVIEW, DataTaskKind.TOKENS})
LENGTHY = frozenset(DataTaskKind) - INTERACTIVE
#: A worker shows a sign of life every half second.
LOST_AFTER = timedelta(seconds=60)
#: How often in a row a task may lose its worker: what kills three has its cause in the task.
MAX_LOSSES = 3
#: Finished interactive tasks that are kept.
_KEPT_INTERACTIVE = 200
_MAX_REASON = 1000


def create(
    session: Session,
    *,
    request: TaskRequest,
    dataset_id: str,
    version_id: str | None = None,
    purpose: Purpose | None = None,
) -> DataTask:
    """Queue a task; nudge the workers with ``message_for`` when the transaction is over."""
    made = getattr(request, "output", None)
    task = DataTask(
        id=new_id(repository.PREFIX),
        kind=request.kind.value,
        purpose=purpose,
        dataset_id=dataset_id,
        version_id=version_id,
        request=request.model_dump(mode="json"),
        made_dataset_id=getattr(made, "dataset_id", None),
    )
    repository.add_task(session, task)
    if request.kind in INTERACTIVE:
        repository.forget_old_tasks(session, kinds=INTERACTIVE, kept=_KEPT_INTERACTIVE)
    return task


def message_for(task: DataTask) -> str:
    """Return the message that makes a worker look for the task at once."""
    return messages.RUN_PREVIEWS if task.kind in INTERACTIVE else messages.RUN_DATA_TASKS


def get_task(session: Session, *, task_id: str) -> DataTask:
    """Return the task; 404 if there is none."""
    task = repository.find_task(session, task_id=task_id)
    if task is None:
        raise _not_found(task_id)
    return task


def request_of(task: DataTask) -> TaskRequest:
    """Return the request that the task was created with."""
    return TASK_REQUEST.validate_python(task.request)


def list_tasks(
    session: Session,
    *,
    dataset_id: str | None = None,
    kinds: Collection[DataTaskKind] | None = None,
    states: Collection[DataTaskState] | None = None,
    cursor: str | None,
    limit: int,
) -> Page[DataTaskRead]:
    """List one page, newest first, without results."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_tasks(
        session, dataset_id=dataset_id, kinds=kinds, states=states, after=after, limit=limit + 1
    )
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=present_many(session, shown), next_cursor=next_cursor)


def present(session: Session, task: DataTask, with_result: bool = True) -> DataTaskRead:
    """Present a task as clients see it."""
    return present_many(session, [task], with_result=with_result)[0]


def present_many(
    session: Session, found: Sequence[DataTask], with_result: bool = False
) -> list[DataTaskRead]:
    """Present tasks as clients see them."""
    involved = {each for task in found for each in (task.dataset_id, task.made_dataset_id) if each}
    names = map_dataset_names(session, dataset_ids=involved)
    return [_describe(task, names, with_result) for task in found]


def cancel(session: Session, *, task_id: str) -> DataTask:
    """End a task that waits or runs; the worker that carries it out notices."""
    task = _require_locked(session, task_id)
    if task.state in DATA_TASK_FINISHED:
        raise DataTaskFinished(f"The task has already {task.state}.")
    _finish(session, task, DataTaskState.CANCELLED, cause="cancelled", reason="Canceled.")
    return task


def retry(session: Session, *, task_id: str) -> DataTask:
    """Let a task that failed or was cancelled wait again; it goes on where it stopped."""
    task = _require_locked(session, task_id)
    if task.state not in (DataTaskState.FAILED, DataTaskState.CANCELLED):
        raise DataTaskNotRetryable(f"The task is {task.state}; only failed or canceled tasks can be retried.")
    if find_dataset(session, dataset_id=task.dataset_id) is None:
        raise DataTaskNotRetryable("The dataset was deleted.")
    made_id = task.made_dataset_id
    if made_id is not None and find_dataset(session, dataset_id=made_id) is None:
        raise DataTaskNotRetryable("The target dataset was deleted.")
    task.state = DataTaskState.QUEUED
    task.progress, task.result = {}, None
    task.reason = task.cause = None
    task.started_at = task.finished_at = task.touched_at = None
    session.add(task)
    for dataset in _datasets_made_by(session, task):
        if dataset.state == DatasetState.FAILED:
            dataset.state = DatasetState.CREATING
            session.add(dataset)
    session.flush()
    return task


def delete(session: Session, settings: Settings, *, task_id: str) -> None:
    """Forget a finished task with its folder."""
    repository.lock_task(session, task_id=task_id)
    task = get_task(session, task_id=task_id)
    if task.state not in DATA_TASK_FINISHED:
        raise DataTaskUnfinished("The task is queued or running. Cancel it first.")
    repository.delete_task(session, task_id=task.id)
    remove_after_commit(session, settings.data_task_dir(task.id))


# -- for workers


def claim(session: Session, *, task_id: str) -> DataTask | None:
    """Take a waiting task; None where another worker has it or nobody wants it any more."""
    if not repository.claim_task(session, task_id=task_id):
        return None
    return repository.lock_task(session, task_id=task_id)


def advance(session: Session, *, task_id: str, attempt: int, progress: DataTaskProgress | None) -> bool:
    """Note a sign of life and progress, if there is news; False where this attempt is to end."""
    news = None if progress is None else progress.model_dump(mode="json")
    return repository.advance_task(session, task_id=task_id, attempt=attempt, progress=news)


def release(session: Session, *, task_id: str, attempt: int) -> bool:
    """Let a task wait for another worker, because this one leaves."""
    return repository.requeue_task(session, task_id=task_id, attempt=attempt)


def recover_lost(session: Session) -> list[str]:
    """Requeue tasks whose worker died, or fail them if it happened too often; returns their ids."""
    silent_since = utc_now() - LOST_AFTER
    recovered = []
    for found in sorted(repository.list_lost(session, silent_since=silent_since), key=_target_of):
        # A worker that was only slow may have settled it, or shown a sign of life, meanwhile.
        task = hold(session, task_id=found.id, attempt=found.attempt)
        if task is None or task.touched_at is None or task.touched_at >= silent_since:
            continue
        died = TaskFailure(code="worker_lost", message="The worker running the task died.")
        lose(session, task=task, failure=died)
        recovered.append(task.id)
    return recovered


def lose(session: Session, *, task: DataTask, failure: TaskFailure) -> None:
    """Let a task go on where its process was killed; what kills every one of them in a row fails."""
    if task.attempt % MAX_LOSSES:
        repository.requeue_task(session, task_id=task.id, attempt=task.attempt)
        log.warning("data task %s waits for another try: %s", task.id, failure.message)
        return
    message = f"{failure.message} This happened {MAX_LOSSES} times."
    fail(session, task=task, failure=TaskFailure(code=failure.code, message=message))


def hold(session: Session, *, task_id: str, attempt: int) -> DataTask | None:
    """Return the task, locked until the transaction ends; None if this attempt no longer counts."""
    task = _lock(session, task_id)
    is_ours = task is not None and task.state == DataTaskState.RUNNING and task.attempt == attempt
    return task if is_ours else None


def step_back(session: Session, *, task: DataTask) -> None:
    """Let a task, which ``hold`` gave, wait as if this attempt had not begun."""
    task.state = DataTaskState.QUEUED
    task.attempt -= 1
    task.touched_at = None
    session.add(task)
    session.flush()


def settle(
    session: Session,
    *,
    task: DataTask,
    result: dict[str, Any],
    made_version: str | None = None,
    made_dataset: str | None = None,
) -> None:
    """Note that a task, which ``hold`` gave, has succeeded."""
    task.result = result
    task.made_version_id, task.made_dataset_id = made_version, made_dataset
    _finish(session, task, DataTaskState.SUCCEEDED)


def fail(session: Session, *, task: DataTask, failure: TaskFailure) -> None:
    """Note that a task, which ``hold`` gave, cannot be done."""
    _finish(session, task, DataTaskState.FAILED, cause=failure.code, reason=failure.message)


def _lock(session: Session, task_id: str) -> DataTask | None:
    """Lock the dataset that a task's rows go to, then the task, and return the task's current state.

    Whoever deletes or publishes begins with the dataset, too: in another order both would wait for ever.
    """
    task = repository.find_task(session, task_id=task_id)
    if task is not None:
        lock_dataset(session, dataset_id=_target_of(task))
    return repository.lock_task(session, task_id=task_id)


def _target_of(task: DataTask) -> str:
    """Return the ID of the dataset that a task's rows go to, or that it reads."""
    return task.made_dataset_id or task.dataset_id


def _require_locked(session: Session, task_id: str) -> DataTask:
    task = _lock(session, task_id)
    if task is None:
        raise _not_found(task_id)
    return task


def _not_found(task_id: str) -> DataTaskNotFound:
    return DataTaskNotFound(f"Data task '{task_id}' not found.")


def _finish(
    session: Session,
    task: DataTask,
    state: DataTaskState,
    *,
    cause: str | None = None,
    reason: str | None = None,
) -> None:
    task.state = state.value
    task.finished_at = utc_now()
    task.cause = cause
    task.reason = redact(reason)[:_MAX_REASON] if reason else None
    session.add(task)
    if state is not DataTaskState.SUCCEEDED:
        for dataset in _datasets_made_by(session, task):
            dataset.state = DatasetState.FAILED
            session.add(dataset)
    session.flush()
    log.info("data task %s (%s) has %s", task.id, task.kind, state)


def _datasets_made_by(session: Session, task: DataTask) -> list[Dataset]:
    """Return the datasets without rows that get their first ones from the task."""
    named = {task.dataset_id, task.made_dataset_id} - {None}
    found = [find_dataset(session, dataset_id=dataset_id) for dataset_id in sorted(filter(None, named))]
    return [each for each in found if each and each.task_id == task.id and each.head is None]


def _describe(task: DataTask, names: Mapping[str, str], with_result: bool) -> DataTaskRead:
    needed = {task.dataset_id, task.made_dataset_id or task.dataset_id}
    can_retry = task.state in (DataTaskState.FAILED, DataTaskState.CANCELLED) and needed <= names.keys()
    return DataTaskRead(
        id=task.id,
        kind=DataTaskKind(task.kind),
        purpose=task.purpose,
        state=DataTaskState(task.state),
        dataset=task.dataset_id,
        dataset_name=names.get(task.dataset_id),
        version=task.version_id,
        progress=DataTaskProgress.model_validate(task.progress),
        result=task.result if with_result else None,
        made_dataset=task.made_dataset_id if task.state == DataTaskState.SUCCEEDED else None,
        made_version=task.made_version_id,
        reason=task.reason,
        cause=task.cause,
        attempt=task.attempt,
        can_cancel=task.state not in DATA_TASK_FINISHED,
        can_retry=can_retry,
        created_at=task.created_at,
        started_at=task.started_at,
        finished_at=task.finished_at,
    )
