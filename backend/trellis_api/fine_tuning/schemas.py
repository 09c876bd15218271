"""Files and fine-tuning jobs as OpenAI's API shows them; names and kinds of fields are its."""

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
    status_details: str | None = Field(default=None, description="Why its rows cannot be learned from.")
    expires_at: int | None = None


class FileList(BaseModel):
    """Files."""

    object: Literal["list"] = "list"
    data: list[FileObject]
    has_more: bool
    first_id: str | None
    last_id: str | None


class FileDeleted(BaseModel):
    """A file is gone."""

    id: str
    object: Literal["file"] = "file"
    deleted: bool = True


class JobError(BaseModel):
    """Why a job failed."""

    code: str
    message: str
    param: str | None = None


#: As in OpenAI's API, and ``paused`` for a job that rests.
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
    trellis_job_id: str | None = Field(description="The job of the platform that carries it out.")


class JobList(BaseModel):
    """Fine-tuning jobs."""

    object: Literal["list"] = "list"
    data: list[JobObject]
    has_more: bool


class EventObject(BaseModel):
    """Something that happened to a job."""

    id: str
    object: Literal["fine_tuning.job.event"] = "fine_tuning.job.event"
    created_at: int
    level: Literal["info", "warn", "error"]
    message: str
    type: Literal["message", "metrics"]
    data: dict[str, Any] | None = None


class EventList(BaseModel):
    """Events, newest first."""

    object: Literal["list"] = "list"
    data: list[EventObject]
    has_more: bool


class CheckpointObject(BaseModel):
    """A checkpoint that answers requests under its name."""

    id: str
    object: Literal["fine_tuning.job.checkpoint"] = "fine_tuning.job.checkpoint"
    created_at: int
    fine_tuned_model_checkpoint: str
    fine_tuning_job_id: str
    metrics: dict[str, float]
    step_number: int


class CheckpointList(BaseModel):
    """Checkpoints, newest first."""

    object: Literal["list"] = "list"
    data: list[CheckpointObject]
    first_id: str | None
    last_id: str | None
    has_more: bool
