"""Decides about workflow files."""

from typing import Any

from sqlmodel import Session

from trellis_api.core.errors import DomainError
from trellis_api.job_pipelines.uses import list_uses
from trellis_api.workflows.errors import UnknownWorkflow
from trellis_api.workflows.files import FILES
from trellis_api.workflows.models import WorkflowFile
from trellis_api.workflows.schemas import WorkflowCreate
from trellis_api.workflows.source_check import NoWorkflow, find_function

#: The knob that names a workflow.
KNOB = "workflow"
FIELD = f"params.{KNOB}"


def add_workflow(session: Session, *, request: WorkflowCreate) -> WorkflowFile:
    """Keep a file that has a workflow; nothing of it is executed."""
    try:
        function = find_function(request.code, request.function)
    except NoWorkflow as error:
        raise FILES.refuse(error.faults) from None
    return FILES.add(session, name=request.name, code=request.code, function=function)


def delete_workflow(session: Session, *, workflow_id: str) -> None:
    """Forget a file; refused while an unfinished job trains with it, or a pipeline under way is going to."""
    # Locked before the jobs are looked at: a job that is being created holds it, and is seen afterwards.
    FILES.lock(session, workflow_id)
    file = FILES.get(session, workflow_id)
    FILES.delete(session, file, users=list_uses(session, knob=KNOB, value=workflow_id))


def keep_workflow(session: Session, params: dict[str, Any]) -> None:
    """Hold the file that a job's parameters name, until the transaction ends."""
    if isinstance(name := params.get(KNOB), str):
        FILES.lock(session, name, is_shared=True)


def require_workflow(session: Session, params: dict[str, Any]) -> WorkflowFile | None:
    """The file that a job's parameters name, None where they name none; raises where it is not there."""
    name = params.get(KNOB)
    if not isinstance(name, str):
        return None
    file = FILES.find(session, name)
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
