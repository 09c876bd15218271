"""Decides about workflow files."""

import shutil
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session
from trellis_contracts.workflow_states import WorkflowState
from trellis_recipes.workflows.archive import unpack
from trellis_recipes.workflows.package import MAX_BYTES, BadPackage, WorkflowPackage, read_package
from trellis_recipes.workflows.source import AUXILIARY, NoWorkflow, find_function, needs_auxiliary

from trellis_api.core.errors import DomainError, InvalidRequest
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.core.transaction_files import remove_after_commit, remove_unless_committed
from trellis_api.core.uses import WORKFLOWS, list_labels
from trellis_api.uploads.errors import explain_disk_error
from trellis_api.uploads.storage import require_complete
from trellis_api.workflows.errors import (
    AuxiliaryModelsMissing,
    UnknownWorkflow,
    WorkflowNotReady,
    WorkflowNotRetryable,
)
from trellis_api.workflows.files import FILES
from trellis_api.workflows.folders import package_folder
from trellis_api.workflows.models import WorkflowFile
from trellis_api.workflows.schemas import WorkflowCreate

#: The parameter that names a workflow.
PARAMETER = "workflow"
FIELD, AUXILIARY_FIELD = f"params.{PARAMETER}", f"params.{AUXILIARY}"


@dataclass(frozen=True)
class Unpacked:
    """A package that lies in its folder, and of which there is no row yet."""

    id: str
    package: WorkflowPackage


def unpack_upload(settings: Settings, *, request: WorkflowCreate) -> Unpacked | None:
    """Unpack and check the package of a request; None if it brings a single file.

    Takes seconds for a large archive, so it is done before a transaction begins.
    """
    if request.upload is None:
        return None
    upload = require_complete(settings, request.upload)
    if upload.size_bytes > MAX_BYTES:
        raise FILES.refuse([f"The archive is larger than {MAX_BYTES // 1024**2} MiB."])
    identifier = new_id(FILES.prefix)
    folder = package_folder(settings, identifier)
    try:
        unpack(upload.path, folder)
        return Unpacked(identifier, read_package(folder, request.function))
    except BadPackage as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise FILES.refuse(error.faults) from None
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise explain_disk_error(error) from error


def add_workflow(
    session: Session, settings: Settings, *, request: WorkflowCreate, unpacked: Unpacked | None = None
) -> WorkflowFile:
    """Keep a file, or a package that was unpacked; nothing of it is executed."""
    if unpacked is None:
        code = request.code or ""
        try:
            function = find_function(code, request.function)
        except NoWorkflow as error:
            raise FILES.refuse(error.faults) from None
        return FILES.add(session, name=request.name, code=code, function=function)
    remove_unless_committed(session, package_folder(settings, unpacked.id))
    package = unpacked.package
    return FILES.add(
        session,
        identifier=unpacked.id,
        name=request.name,
        code=package.code,
        function=package.function,
        sha256=package.sha256,
        size_bytes=package.size_bytes,
        files=package.files,
        requirements=package.requirements,
        state=(WorkflowState.QUEUED if package.requirements else WorkflowState.READY).value,
    )


def retry(session: Session, *, workflow_id: str) -> WorkflowFile:
    """Install requirements that could not be installed, or whose installation is no longer there."""
    FILES.lock(session, workflow_id)
    file = FILES.get(session, workflow_id)
    is_installed = file.state == WorkflowState.READY and bool(file.requirements)
    if file.state != WorkflowState.FAILED and not is_installed:
        raise WorkflowNotRetryable(
            f"'{file.name}' is {file.state}; only failed installations can be retried."
        )
    file.state, file.reason, file.touched_at = WorkflowState.QUEUED.value, None, None
    session.add(file)
    session.flush()
    return file


def delete_workflow(session: Session, settings: Settings, *, workflow_id: str) -> None:
    """Forget a file; refused while an unfinished job, pipeline or sweep trains with it."""
    # Locked before the jobs are looked at: a job that is being created holds it, and is seen afterwards.
    FILES.lock(session, workflow_id)
    file = FILES.get(session, workflow_id)
    FILES.delete(session, file, users=list_labels(WORKFLOWS.find(session, workflow_id)))
    if file.files is not None:
        remove_after_commit(session, package_folder(settings, workflow_id))


def keep_workflow(session: Session, params: dict[str, Any]) -> None:
    """Hold the file that a job's parameters name, until the transaction ends."""
    if isinstance(name := params.get(PARAMETER), str):
        FILES.lock(session, name, is_shared=True)


def require_workflow(session: Session, params: dict[str, Any]) -> WorkflowFile | None:
    """Return the file that a job's parameters name, None if they name none; raises if it cannot be used."""
    name = params.get(PARAMETER)
    if not isinstance(name, str):
        return None
    file = FILES.find(session, name)
    if file is None:
        raise _refuse(UnknownWorkflow, f"Agent code '{name}' not found; it may have been deleted.", FIELD)
    if file.state != WorkflowState.READY:
        told = f" {file.reason}" if file.reason else ""
        raise _refuse(
            WorkflowNotReady,
            f"The requirements of '{file.name}' are not installed: {file.state}.{told}",
            FIELD,
        )
    if needs_auxiliary(file.code, file.function) and not params.get(AUXILIARY):
        message = f"'{file.name}' has the parameter {AUXILIARY}: name the models that it is handed."
        raise _refuse(AuxiliaryModelsMissing, message, AUXILIARY_FIELD)
    return file


def find_workflow_problems(session: Session, params: dict[str, Any]) -> list[tuple[DomainError, str]]:
    """Find why a job can't train with the workflow that it names, with the field; empty if it can."""
    try:
        require_workflow(session, params)
    except AuxiliaryModelsMissing as error:
        return [(error, AUXILIARY_FIELD)]
    except DomainError as error:
        return [(error, FIELD)]
    return []


def _refuse(error: type[InvalidRequest], message: str, field: str) -> InvalidRequest:
    return error(message, [{"code": error.code, "field": field, "message": message}])
