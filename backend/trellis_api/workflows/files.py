"""Where workflow files are kept."""

from trellis_api.code_files.store import FileStore
from trellis_api.workflows.errors import WorkflowInUse, WorkflowInvalid, WorkflowNameTaken, WorkflowNotFound
from trellis_api.workflows.models import WorkflowFile
from trellis_api.workflows.schemas import WorkflowRead

FILES = FileStore(
    table=WorkflowFile,
    read=WorkflowRead,
    prefix="wfl",
    noun="agent code",
    not_found=WorkflowNotFound,
    name_taken=WorkflowNameTaken,
    invalid=WorkflowInvalid,
    in_use=WorkflowInUse,
)
