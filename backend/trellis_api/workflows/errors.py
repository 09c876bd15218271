"""What can go wrong with workflow files."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class WorkflowNotFound(NotFound):
    """No file has this id."""

    code = "workflow_not_found"


class WorkflowNameTaken(Conflict):
    """Another file has this name."""

    code = "workflow_name_taken"


class WorkflowInvalid(InvalidRequest):
    """The file is no Python, or has no workflow."""

    code = "workflow_invalid"


class WorkflowInUse(Conflict):
    """An unfinished job trains with the file."""

    code = "workflow_in_use"


class WorkflowNotReady(InvalidRequest):
    """The requirements of the workflow are not installed (yet)."""

    code = "workflow_not_ready"


class WorkflowNotRetryable(Conflict):
    """Installing has not failed."""

    code = "workflow_not_retryable"


class UnknownWorkflow(InvalidRequest):
    """A job names a file that does not exist."""

    code = "unknown_workflow"


class AuxiliaryModelsMissing(InvalidRequest):
    """The workflow takes other models beside the one that is trained, and the job names none."""

    code = "auxiliary_models_missing"


class UnknownAuxiliaryModel(InvalidRequest):
    """A model that a job names for its workflow is not there, or cannot be asked."""

    code = "unknown_auxiliary_model"
