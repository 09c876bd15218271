"""Queries on workflows whose requirements wait to be installed."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col, or_, select
from trellis_contracts.workflow_states import WorkflowState

from trellis_api.core.columns import utc_now
from trellis_api.workflows.models import WorkflowFile


def list_waiting(session: Session, *, lost_before: datetime) -> Sequence[str]:
    """List ids, oldest first, including those whose worker died."""
    query = select(WorkflowFile.id).where(_waits(lost_before))
    return session.exec(query.order_by(col(WorkflowFile.created_at))).all()


def claim(session: Session, *, workflow_id: str, lost_before: datetime) -> bool:
    """Take one that waits; False where another worker has it."""
    statement = update(WorkflowFile).where(col(WorkflowFile.id) == workflow_id, _waits(lost_before))
    values = {"state": WorkflowState.INSTALLING.value, "touched_at": utc_now()}
    return session.exec(statement.values(**values)).rowcount == 1


def touch(session: Session, *, workflow_id: str) -> bool:
    """Note a sign of life; False where it was deleted."""
    statement = update(WorkflowFile).where(
        col(WorkflowFile.id) == workflow_id, col(WorkflowFile.state) == WorkflowState.INSTALLING
    )
    return session.exec(statement.values(touched_at=utc_now())).rowcount == 1


def settle(
    session: Session,
    *,
    workflow_id: str,
    state: WorkflowState,
    installed: list[str] | None,
    reason: str | None,
) -> None:
    """Note how the installation ended."""
    values: dict[str, Any] = {"state": state.value, "installed": installed, "reason": reason}
    statement = update(WorkflowFile).where(
        col(WorkflowFile.id) == workflow_id, col(WorkflowFile.state) == WorkflowState.INSTALLING
    )
    session.exec(statement.values(**values))


def list_known(session: Session, *, workflow_ids: Iterable[str]) -> set[str]:
    """Return those of the ids that exist."""
    return set(
        session.exec(select(WorkflowFile.id).where(col(WorkflowFile.id).in_(list(workflow_ids)))).all()
    )


def list_requirements(session: Session) -> set[tuple[str, ...]]:
    """Return the requirements of all workflows, those of each in order."""
    rows = session.exec(select(WorkflowFile.requirements).where(col(WorkflowFile.files).is_not(None))).all()
    return {tuple(sorted(each)) for each in rows if each}


def _waits(lost_before: datetime) -> Any:
    is_lost = (col(WorkflowFile.state) == WorkflowState.INSTALLING) & (
        col(WorkflowFile.touched_at) < lost_before
    )
    return or_(col(WorkflowFile.state) == WorkflowState.QUEUED, is_lost)
