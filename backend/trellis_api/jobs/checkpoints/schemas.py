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
    path: str = Field(description="Relative to the data root if it is inside it.")
    hf_path: str | None = Field(description="Folder in Hugging Face format, if there is one.")
    size_bytes: int
    metrics: dict[str, float | None] = Field(
        description="Headline and validation metrics as reported at this step; those of training that were "
        "not reported at it as last reported before."
    )
    metric_steps: dict[str, int] = Field(
        description="Of `metrics`, those of an earlier step, and that step. They never decide which is best."
    )
    created_at: datetime
    is_best: bool = Field(description="By the requested metric, else the job's, else the recipe's.")
    is_kept: bool = Field(description="Pinned by a user.")
    is_pruned: bool = Field(description="Its files were removed; its metrics are kept.")
    kept_because: list[
        Literal["pinned", "best", "resumed", "exporting", "evaluating", "serving", "model"]
    ] = Field(description="Why it is not pruned.")
    evaluation: CheckpointEvaluation | None = Field(
        description="Of the job's own evaluations; null where none was due."
    )
    can_resume: bool
    can_export: bool
    can_delete: bool
    has_adapter: bool = Field(description="Contains an adapter, which can be exported on its own.")


class BestCheckpoint(BaseModel):
    """What selected the best checkpoint."""

    metric: str
    mode: Mode = Field(description="The metric's direction: as requested, else its default.")
    step: int | None = Field(description="Null if no existing checkpoint has a value.")


class CheckpointPage(Page[CheckpointRead]):
    """Checkpoints, newest first."""

    best: BestCheckpoint | None = Field(description="Across all pages; null without measurements.")


class CheckpointUpdate(BaseModel):
    """User settings of a checkpoint."""

    model_config = ConfigDict(extra="forbid")

    is_kept: bool = Field(description="Never prune it.")
