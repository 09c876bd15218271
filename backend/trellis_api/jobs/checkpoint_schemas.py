"""Checkpoints as clients read them, and what a person decides about them."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trellis_api.core.pagination import Page
from trellis_api.jobs.evaluating.schemas import CheckpointEvaluation
from trellis_api.jobs.schemas import Mode


class CheckpointRead(BaseModel):
    """A complete checkpoint."""

    step: int
    attempt: int
    path: str = Field(description="Relative to the data root where it lies under it.")
    hf_path: str | None = Field(description="Folder in Hugging Face format, if there is one.")
    size_bytes: int
    metrics: dict[str, float | None] = Field(
        description="Headline and validation metrics as last reported at or before this step."
    )
    created_at: datetime
    is_best: bool = Field(description="By the metric asked for, else the job's, else the recipe's.")
    is_kept: bool = Field(description="Pinned by a person.")
    is_pruned: bool = Field(description="Its files were removed; its metrics are still here.")
    kept_because: list[Literal["pinned", "best", "resumed", "exporting", "evaluating", "model"]] = Field(
        description="Why it is not removed to make room."
    )
    evaluation: CheckpointEvaluation | None = Field(
        description="Of the job's own evaluations; null where none was due."
    )
    can_resume: bool
    can_export: bool
    can_delete: bool
    has_adapter: bool = Field(description="It holds an adapter, which may be exported alone.")


class BestCheckpoint(BaseModel):
    """What told which checkpoint is the best."""

    metric: str
    mode: Mode = Field(description="The good end of the metric: as asked for, else as suits it.")
    step: int | None = Field(description="Null where no checkpoint that is still there has a value.")


class CheckpointPage(Page[CheckpointRead]):
    """Checkpoints, newest first."""

    best: BestCheckpoint | None = Field(
        description="Among those of all pages; null where nothing was measured."
    )


class CheckpointUpdate(BaseModel):
    """What a person decides about a checkpoint."""

    model_config = ConfigDict(extra="forbid")

    is_kept: bool = Field(description="Never remove it to make room.")
