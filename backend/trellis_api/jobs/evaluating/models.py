"""The table of checkpoints that their job wants measured."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Index
from sqlalchemy import false as sa_false
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime


class DueState(StrEnum):
    """State of a checkpoint evaluation."""

    #: No evaluation stands for it yet.
    WAITING = "waiting"
    QUEUED = "queued"
    #: Its scores are among the job's metrics.
    RECORDED = "recorded"
    FAILED = "failed"
    #: Too many waited when it was saved.
    SKIPPED = "skipped"


#: The checkpoint's files are still needed.
OPEN = (DueState.WAITING.value, DueState.QUEUED.value)


class DueEvaluation(SQLModel, table=True):
    """A checkpoint that is to be measured: the row is the intent, its key makes it happen once.

    A job that is resumed from before the checkpoint loses the row, and writes it anew when it comes
    there again: the weights are others then.
    """

    __tablename__ = "due_evaluations"
    __table_args__ = (Index("ix_due_evaluations_state", "state"),)

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    step: int = Field(primary_key=True, sa_type=BigInteger)
    #: When the checkpoint was saved, by the run's clock.
    saved_at: datetime = Field(sa_type=UtcDateTime)
    #: Asked for by the end of the training, not by its steps or minutes.
    is_final: bool = Field(default=False, sa_column_kwargs={"server_default": sa_false()})
    state: str = Field(default=DueState.WAITING.value, max_length=16)
    #: Stays when the evaluation is deleted, so that it is not asked for again.
    evaluation_id: str | None = Field(default=None, max_length=32, index=True)
    #: Why there are no scores, or not all that were asked for.
    problem: str | None = Field(default=None, max_length=2000)
    #: When its scores were recorded or it failed; one that is tried again ends a second time.
    closed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
