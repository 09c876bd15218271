"""Decides about workflow files."""

import hashlib
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from trellis_api.core.errors import DomainError
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.job_pipelines.uses import list_uses
from trellis_api.workflows import repository
from trellis_api.workflows.errors import (
    UnknownWorkflow,
    WorkflowInUse,
    WorkflowInvalid,
    WorkflowNameTaken,
    WorkflowNotFound,
)
from trellis_api.workflows.models import WorkflowFile
from trellis_api.workflows.schemas import WorkflowCreate, WorkflowRead
from trellis_api.workflows.source_check import NoWorkflow, find_function

#: The knob that names a workflow.
KNOB = "workflow"
FIELD = f"params.{KNOB}"


def add_workflow(session: Session, *, request: WorkflowCreate) -> WorkflowFile:
    """Keep a file that has a workflow; nothing of it is executed."""
    try:
        function = find_function(request.code, request.function)
    except NoWorkflow as error:
        details = [{"code": "invalid_code", "field": "code", "message": str(error)}]
        raise WorkflowInvalid(str(error), details) from None
    if repository.find_workflow_named(session, name=request.name):
        raise _name_taken(request.name)
    content = request.code.encode()
    file = WorkflowFile(
        id=new_id(repository.PREFIX),
        name=request.name,
        code=request.code,
        function=function,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
    )
    try:
        repository.add_workflow(session, file)
    except IntegrityError as error:
        raise _name_taken(request.name) from error
    return file


def get_workflow(session: Session, *, workflow_id: str) -> WorkflowFile:
    """The file; 404 where there is none."""
    file = repository.find_workflow(session, workflow_id=workflow_id)
    if file is None:
        raise WorkflowNotFound(f"There is no workflow '{workflow_id}'.")
    return file


def list_workflows(session: Session, *, cursor: str | None, limit: int) -> Page[WorkflowRead]:
    """One page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_workflows(session, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=[WorkflowRead.model_validate(row) for row in shown], next_cursor=next_cursor)


def delete_workflow(session: Session, *, workflow_id: str) -> None:
    """Forget a file; refused while an unfinished job trains with it, or a pipeline under way is going to."""
    # Locked before the jobs are looked at: a job that is being created holds it, and is seen afterwards.
    repository.lock_workflow(session, workflow_id=workflow_id)
    file = get_workflow(session, workflow_id=workflow_id)
    users = list_uses(session, knob=KNOB, value=workflow_id)
    if users:
        raise WorkflowInUse(f"'{file.name}' is used by {', '.join(users)}.", {"jobs": users})
    repository.delete_workflow(session, file)


def keep_workflow(session: Session, params: dict[str, Any]) -> None:
    """Hold the file that a job's parameters name, until the transaction ends."""
    if isinstance(name := params.get(KNOB), str):
        repository.lock_workflow(session, workflow_id=name, is_shared=True)


def require_workflow(session: Session, params: dict[str, Any]) -> WorkflowFile | None:
    """The file that a job's parameters name, None where they name none; raises where it is not there."""
    name = params.get(KNOB)
    if not isinstance(name, str):
        return None
    file = repository.find_workflow(session, workflow_id=name)
    if file is None:
        message = f"There is no workflow '{name}' (any more)."
        raise UnknownWorkflow(message, [{"code": UnknownWorkflow.code, "field": FIELD, "message": message}])
    return file


def find_workflow_problems(session: Session, params: dict[str, Any]) -> list[tuple[DomainError, str]]:
    """Why a job cannot train with the workflow that it names, with the field; empty where it can."""
    try:
        require_workflow(session, params)
    except UnknownWorkflow as error:
        return [(error, FIELD)]
    return []


def _name_taken(name: str) -> WorkflowNameTaken:
    return WorkflowNameTaken(f"There is a workflow named '{name}' already.", {"name": name})
