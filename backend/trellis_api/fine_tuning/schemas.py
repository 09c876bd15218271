"""Response schemas of files and fine-tuning jobs; fields are those of OpenAI's API."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class FileObject(BaseModel):
    """A file."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: Literal["uploaded", "processed", "error"]
    status_details: str | None = Field(default=None, description="Why the file can't be used for training.")
    expires_at: int | None = None


class FileList(BaseModel):
    """A list of files."""

    object: Literal["list"] = "list"
    data: list[FileObject]
    has_more: bool
    first_id: str | None
    last_id: str | None


class FileDeleted(BaseModel):
    """A deleted file."""

    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class JobError(BaseModel):
    """Why a job failed."""

    code: str
    message: str
    param: str | None = None


#: As in OpenAI's API, and ``paused``.
Status = Literal["validating_files", "queued", "running", "paused", "succeeded", "failed", "cancelled"]


class JobObject(BaseModel):
    """A fine-tuning job."""

    id: str
    object: Literal["fine_tuning.job"] = "fine_tuning.job"
    created_at: int
    error: JobError | None
    fine_tuned_model: str | None
    finished_at: int | None
    hyperparameters: dict[str, Any]
    model: str
    organization_id: str = "trellis"
    result_files: list[str]
    seed: int
    status: Status
    trained_tokens: int | None
    training_file: str
    validation_file: str | None
    estimated_finish: int | None
    integrations: list[dict[str, Any]] = Field(default_factory=list)
    metadata: dict[str, str] | None
    method: dict[str, Any]
    suffix: str | None
    trellis_job_id: str | None = Field(description="ID of the platform job that runs it.")


class JobList(BaseModel):
    """A list of fine-tuning jobs."""

    object: Literal["list"] = "list"
    data: list[JobObject]
    has_more: bool


class EventObject(BaseModel):
    """An event of a job."""

    id: str
    object: Literal["fine_tuning.job.event"] = "fine_tuning.job.event"
    created_at: int
    level: Literal["info", "warn", "error"]
    message: str
    type: Literal["message", "metrics"]
    data: dict[str, Any] | None = None


class EventList(BaseModel):
    """A list of events, newest first."""

    object: Literal["list"] = "list"
    data: list[EventObject]
    has_more: bool


class CheckpointObject(BaseModel):
    """A checkpoint that requests can use as `model`."""

    id: str
    object: Literal["fine_tuning.job.checkpoint"] = "fine_tuning.job.checkpoint"
    created_at: int
    fine_tuned_model_checkpoint: str
    fine_tuning_job_id: str
    metrics: dict[str, float]
    step_number: int


class CheckpointList(BaseModel):
    """A list of checkpoints, newest first."""

    object: Literal["list"] = "list"
    data: list[CheckpointObject]
    first_id: str | None
    last_id: str | None
    has_more: bool
