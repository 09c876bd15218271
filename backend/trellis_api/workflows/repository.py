"""Queries on workflow files."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, select, tuple_

from trellis_api.core.ids import is_id
from trellis_api.workflows.models import WorkflowFile

PREFIX = "wfl"
Position = tuple[datetime, str]


def find_workflow(session: Session, *, workflow_id: str) -> WorkflowFile | None:
    """The file of this id; None for anything that is no id."""
    return session.get(WorkflowFile, workflow_id) if is_id(workflow_id, prefix=PREFIX) else None


def lock_workflow(session: Session, *, workflow_id: str, is_shared: bool = False) -> WorkflowFile | None:
    """The file as it stands now, kept until the transaction ends: from deletion where the lock is shared."""
    if not is_id(workflow_id, prefix=PREFIX):
        return None
    return session.get(WorkflowFile, workflow_id, with_for_update={"read": is_shared}, populate_existing=True)


def find_workflow_named(session: Session, *, name: str) -> WorkflowFile | None:
    """The file of this name."""
    return session.exec(select(WorkflowFile).where(WorkflowFile.name == name)).first()


def list_workflows(session: Session, *, after: Position | None, limit: int) -> Sequence[WorkflowFile]:
    """Newest first."""
    query = select(WorkflowFile)
    if after:
        query = query.where(tuple_(col(WorkflowFile.created_at), col(WorkflowFile.id)) < after)
    return session.exec(
        query.order_by(col(WorkflowFile.created_at).desc(), col(WorkflowFile.id).desc()).limit(limit)
    ).all()


def add_workflow(session: Session, file: WorkflowFile) -> None:
    """Insert; IntegrityError where the name is taken."""
    session.add(file)
    session.flush()


def delete_workflow(session: Session, file: WorkflowFile) -> None:
    """Delete the row."""
    session.delete(file)
    session.flush()
