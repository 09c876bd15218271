"""What clients see of the evaluations that a training asks for."""

from pydantic import BaseModel, Field
from trellis_contracts.recipe import Text
from trellis_contracts.states import JobState

from trellis_api.evaluations.orders import EvaluateWhileTraining
from trellis_api.jobs.evaluating.models import DueState


class EarlyStopped(BaseModel):
    """The score that ended a training."""

    label: str
    metric: str
    best: float
    best_step: int
    last_step: int = Field(description="Step of the checkpoint that was measured last.")
    count: int = Field(description="Evaluations since the best one.")
    reason: Text


class EvaluateRead(EvaluateWhileTraining):
    """The request, and whether it stopped the training early."""

    stopped: EarlyStopped | None = Field(description="Null unless the job was stopped early by a score.")
    skipped: int = Field(
        description="Checkpoints that were skipped: too many evaluations were pending when they were saved."
    )


class CheckpointEvaluation(BaseModel):
    """State of a checkpoint evaluation requested by its job."""

    id: str | None = Field(description="The evaluation; null before it is queued, and where it was deleted.")
    state: DueState = Field(
        description="waiting, queued (its evaluation waits or runs), recorded, failed, or skipped: too many "
        "were waiting already."
    )
    job_state: JobState | None = Field(description="Of the evaluation's job.")
    is_final: bool = Field(description="Asked for by the end of the training.")
    problem: str | None = Field(description="Why some or all scores are missing.")
