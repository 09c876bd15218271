"""What can be wrong with a request for a job."""

from trellis_contracts.states import JobState

from trellis_api.core.errors import Conflict, DomainError, InvalidRequest, NotFound


class JobNotFound(NotFound):
    """No such job."""

    code = "job_not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Job {job_id} not found.")


class MoveNotAllowed(Conflict):
    """The table of moves does not lead from the one state to the other."""

    code = "move_not_allowed"

    def __init__(self, current: JobState, wanted: JobState) -> None:
        super().__init__(
            f"A job that is {current.value} cannot become {wanted.value}.",
            {"state": current.value, "wanted": wanted.value},
        )


class JobNotStoppable(Conflict):
    """The job is over, or stopping already."""

    code = "job_not_stoppable"


class JobNotResumable(Conflict):
    """The job still runs, or it succeeded."""

    code = "job_not_resumable"


class JobStillActive(Conflict):
    """Stop the job first."""

    code = "job_active"


class JobOfEvaluation(Conflict):
    """The job belongs to an evaluation, with which it is deleted."""

    code = "job_of_evaluation"


class JobNotQueued(Conflict):
    """Only the place of a job in the queue depends on its priority."""

    code = "job_not_queued"


class TooManyTags(InvalidRequest):
    """The job would have more tags than one may."""

    code = "too_many_tags"


class SortNeedsMetric(InvalidRequest):
    """Jobs are sorted by one metric of that name: values of different ones say nothing beside each other."""

    code = "sort_needs_metric"


class CheckpointNotFound(NotFound):
    """No checkpoint of that step."""

    code = "checkpoint_not_found"


class CheckpointPruned(Conflict):
    """The checkpoint's files were removed."""

    code = "checkpoint_pruned"


class CheckpointInUse(Conflict):
    """Something reads or writes the checkpoint, or a person has pinned it."""

    code = "checkpoint_in_use"


class CheckpointNotExportable(InvalidRequest):
    """No model can be made of the checkpoint, or not in that form."""

    code = "checkpoint_not_exportable"


class ExportNameTaken(Conflict):
    """A model, or an export that is under way, has this name."""

    code = "model_name_taken"


class JobNotCloneable(Conflict):
    """An export is asked for at its checkpoint, not copied."""

    code = "job_not_cloneable"


class AdapterNeedsBase(InvalidRequest):
    """The model is an adapter, from which nothing can start."""

    code = "model_is_adapter"


class ManifestNotFound(NotFound):
    """The job has not come far enough to have a manifest."""

    code = "manifest_not_found"


class UnknownModel(InvalidRequest):
    """No such model."""

    code = "unknown_model"


class UnknownDataset(InvalidRequest):
    """No such dataset."""

    code = "unknown_dataset"


class UnknownVersion(InvalidRequest):
    """The dataset has no such version or split, or no rows yet; the details say which field is meant."""

    code = "unknown_version"


class UnsuitableDataset(InvalidRequest):
    """The recipe cannot learn from data of that format."""

    code = "unsuitable_dataset"


class InvalidConfiguration(InvalidRequest):
    """The recipe's parameters or the engine's keys are wrong; the details name each."""

    code = "invalid_configuration"


class TooManyGpus(InvalidRequest):
    """More than the platform has: the job would wait for ever."""

    code = "too_many_gpus"


class WandbNotSetUp(InvalidRequest):
    """Metrics are to go to Weights & Biases, and the platform has no key."""

    code = "wandb_not_set_up"


class WandbNotInstalled(InvalidRequest):
    """Metrics are to go to Weights & Biases, and its package is missing."""

    code = "wandb_not_installed"


class WandbProjectName(InvalidRequest):
    """A name that no project of Weights & Biases can have."""

    code = "wandb_project_name"


class StorageFull(DomainError):
    """Too little space for a run to leave its checkpoints."""

    status = 507
    code = "storage_full"


class StorageUnwritable(DomainError):
    """The data root cannot be written."""

    status = 503
    code = "storage_unwritable"


class RolloutNotFound(NotFound):
    """The job has no sampled response of this number."""

    code = "rollout_not_found"


class ToolsNotShown(InvalidRequest):
    """The model's chat template shows no tools, and the recipe trains an agent that has some."""

    code = "tools_not_shown"


class RowRefusedByTemplate(InvalidRequest):
    """The model's chat template refuses a row, such as one with a system message."""

    code = "row_refused_by_template"


class CannotMoveBefore(Conflict):
    """A queued job cannot stand before that one."""

    code = "cannot_move_before"


class UnknownField(InvalidRequest):
    """A list of jobs has no such field."""

    code = "unknown_field"
