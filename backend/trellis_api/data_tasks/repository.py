"""Queries on data tasks."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Update, delete, update
from sqlalchemy.orm import defer
from sqlmodel import Session, col, or_, select, tuple_
from trellis_contracts.data_tasks import DATA_TASK_FINISHED, DataTaskKind, DataTaskState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id
from trellis_api.data_tasks.models import DataTask

Position = tuple[datetime, str]
PREFIX = "dtk"
#: Of queries for lists: a result may be long, and is read when it is asked for.
WITHOUT_RESULT = defer(DataTask.result)  # type: ignore[arg-type]
UNFINISHED = (DataTaskState.QUEUED, DataTaskState.RUNNING)


def find_task(session: Session, *, task_id: str) -> DataTask | None:
    """Return the task with this ID; None for anything that is not an ID."""
    return session.get(DataTask, task_id) if is_id(task_id, prefix=PREFIX) else None


def lock_task(session: Session, *, task_id: str) -> DataTask | None:
    """Lock the task until the transaction ends and return its current state."""
    if not is_id(task_id, prefix=PREFIX):
        return None
    return session.get(DataTask, task_id, with_for_update=True, populate_existing=True)


def list_tasks(
    session: Session,
    *,
    dataset_id: str | None = None,
    version_id: str | None = None,
    kinds: Collection[str] | None = None,
    states: Collection[str] | None = None,
    purposes: Collection[str] | None = None,
    after: Position | None = None,
    limit: int,
) -> Sequence[DataTask]:
    """List tasks, newest first."""
    query = select(DataTask).options(WITHOUT_RESULT)
    if dataset_id is not None:
        reads_or_makes = or_(
            col(DataTask.dataset_id) == dataset_id, col(DataTask.made_dataset_id) == dataset_id
        )
        query = query.where(reads_or_makes)
    if version_id is not None:
        query = query.where(col(DataTask.version_id) == version_id)
    for column, wanted in ((DataTask.kind, kinds), (DataTask.state, states), (DataTask.purpose, purposes)):
        if wanted:
            query = query.where(col(column).in_(list(wanted)))
    if after:
        query = query.where(tuple_(col(DataTask.created_at), col(DataTask.id)) < after)
    newest_first = (col(DataTask.created_at).desc(), col(DataTask.id).desc())
    return session.exec(query.order_by(*newest_first).limit(limit)).all()


def add_task(session: Session, task: DataTask) -> None:
    """Insert a task."""
    session.add(task)
    session.flush()


def delete_task(session: Session, *, task_id: str) -> None:
    """Delete the row; the worker that carries it out notices."""
    session.exec(delete(DataTask).where(col(DataTask.id) == task_id))


def forget_old_tasks(session: Session, *, kinds: Collection[DataTaskKind], kept: int) -> None:
    """Delete all finished ones of these kinds but the newest."""
    of_kind = col(DataTask.kind).in_(list(kinds))
    newest = select(DataTask.id).where(of_kind).order_by(col(DataTask.created_at).desc()).limit(kept)
    ids = session.exec(newest).all()
    is_finished = col(DataTask.state).in_(list(DATA_TASK_FINISHED))
    session.exec(delete(DataTask).where(of_kind, is_finished, col(DataTask.id).not_in(ids)))


def list_unfinished_tasks(session: Session, *, dataset_id: str) -> Sequence[DataTask]:
    """List the unfinished tasks that read a dataset or make it."""
    is_of = or_(col(DataTask.dataset_id) == dataset_id, col(DataTask.made_dataset_id) == dataset_id)
    return session.exec(select(DataTask).where(is_of, col(DataTask.state).in_(UNFINISHED))).all()


def list_all_unfinished(session: Session) -> Sequence[DataTask]:
    """List all tasks that wait or run."""
    return session.exec(select(DataTask).where(col(DataTask.state).in_(UNFINISHED))).all()


def list_kinds_and_states(session: Session, *, task_ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Map the ids of those tasks that exist to their kind and state."""
    query = select(DataTask.id, DataTask.kind, DataTask.state).where(col(DataTask.id).in_(list(task_ids)))
    return {task_id: (kind, state) for task_id, kind, state in session.exec(query).all()}


def list_waiting(session: Session, *, kinds: Collection[DataTaskKind]) -> Sequence[str]:
    """List the ids of tasks that wait for a worker, oldest first."""
    query = select(DataTask.id).where(
        col(DataTask.state) == DataTaskState.QUEUED, col(DataTask.kind).in_(list(kinds))
    )
    return session.exec(query.order_by(col(DataTask.created_at), col(DataTask.id))).all()


def list_lost(session: Session, *, silent_since: datetime) -> Sequence[DataTask]:
    """List the running tasks whose worker has shown no sign of life since then."""
    query = select(DataTask).where(
        col(DataTask.state) == DataTaskState.RUNNING, col(DataTask.touched_at) < silent_since
    )
    return session.exec(query).all()


def claim_task(session: Session, *, task_id: str) -> bool:
    """Take a queued task; False where another worker has it."""
    now = utc_now()
    claimed = session.exec(
        update(DataTask)
        .where(col(DataTask.id) == task_id, col(DataTask.state) == DataTaskState.QUEUED)
        .values(
            state=DataTaskState.RUNNING.value,
            attempt=DataTask.attempt + 1,
            started_at=now,
            touched_at=now,
        )
    )
    return claimed.rowcount == 1


def advance_task(session: Session, *, task_id: str, attempt: int, progress: dict[str, Any] | None) -> bool:
    """Note a sign of life and progress, if there is news; False where this attempt no longer counts."""
    news = {} if progress is None else {"progress": progress}
    touched = session.exec(_update_running(task_id, attempt).values(touched_at=utc_now(), **news))
    return touched.rowcount == 1


def requeue_task(session: Session, *, task_id: str, attempt: int) -> bool:
    """Let a running task wait again, whose worker leaves or has died."""
    waiting = {"state": DataTaskState.QUEUED.value, "touched_at": None}
    requeued = session.exec(_update_running(task_id, attempt).values(**waiting))
    return requeued.rowcount == 1


def _update_running(task_id: str, attempt: int) -> Update:
    """Build an update of the task that applies only while this attempt at it runs."""
    return update(DataTask).where(
        col(DataTask.id) == task_id,
        col(DataTask.state) == DataTaskState.RUNNING,
        col(DataTask.attempt) == attempt,
    )
