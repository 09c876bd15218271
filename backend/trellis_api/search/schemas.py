"""What the search finds."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, Field


class FoundKind(StrEnum):
    """Kinds of things that can be found, in the order of the results."""

    JOB = "job"
    SWEEP = "sweep"
    DATASET = "dataset"
    MODEL = "model"
    NAMED_MODEL = "named_model"
    EVALUATION = "evaluation"
    REPORT = "report"
    ENDPOINT = "endpoint"
    PIPELINE = "pipeline"
    JOB_PIPELINE = "job_pipeline"
    ENVIRONMENT = "environment"
    WORKFLOW = "workflow"
    REWARD_FILE = "reward_file"


class FoundItem(BaseModel):
    """Something with a name."""

    kind: FoundKind
    id: str = Field(description="For a named model and an endpoint: the name that requests use.")
    name: str
    state: str | None = Field(description="As in the lists of its kind; null where the kind has no states.")
    detail: str | None = Field(
        description="A job's or sweep's recipe, an evaluation's target, an environment's kind."
    )
    created_at: datetime


class SearchResult(BaseModel):
    """Matches by kind; within a kind, names that start with the text first, then the newest."""

    items: list[FoundItem]
