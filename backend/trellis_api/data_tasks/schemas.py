"""Data tasks as clients see them."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field
from trellis_contracts.data_tasks import DataTaskKind, DataTaskProgress, DataTaskState

Purpose = Literal["pipeline", "quality", "duplicates"]


class DataTaskRead(BaseModel):
    """A long-running dataset task with its progress and result."""

    id: str
    kind: DataTaskKind
    purpose: Purpose | None = Field(description="What a run of a pipeline is for; null for other kinds.")
    state: DataTaskState
    dataset: str = Field(description="The dataset that it reads or creates.")
    dataset_name: str | None = Field(description="Null where it was deleted.")
    version: str | None = Field(description="The version that it reads.")
    progress: DataTaskProgress
    #: By kind: import → ImportResult, pipeline → RunResult, preview → Preview, statistics → Statistics,
    #: diff → Difference, tokens → TokenView, generate → GenerationReport.
    result: dict[str, Any] | None = Field(
        description="The result once it has succeeded; its fields depend on the kind."
    )
    made_dataset: str | None
    made_version: str | None = Field(description="The version that it created; null if rows did not change.")
    reason: str | None = Field(description="Why it failed, in one sentence.")
    cause: str | None = Field(description="Code of that reason.")
    attempt: int = Field(description="Number of attempts by workers.")
    can_cancel: bool
    can_retry: bool = Field(description="It failed or was cancelled and can be resumed.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
