"""The tables of evaluations."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Integer
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now

MODEL, CHECKPOINT = "model", "checkpoint"
#: Who asked for an evaluation: a person, or the job whose checkpoint it measures.
PERSON, TRAINING = "person", "training"
_ROW_ID = BigInteger().with_variant(Integer, "sqlite")


class Evaluation(SQLModel, table=True):
    """One model or checkpoint, measured by a job of its own; its state is that job's."""

    __tablename__ = "evaluations"
    __table_args__ = (
        Index("ix_evaluations_newest", "created_at", "id"),
        Index("ix_evaluations_checkpoint", "target_job_id", "target_step"),
    )

    id: str = Field(primary_key=True, max_length=32)
    job_id: str = Field(foreign_key="jobs.id", ondelete="CASCADE", index=True, unique=True)
    name: str = Field(max_length=200)
    #: "person" or "training".
    trigger: str = Field(default=PERSON, max_length=16)
    #: "model" (``target_model_id``) or "checkpoint" (``target_job_id`` and ``target_step``).
    target_kind: str = Field(max_length=16)
    target_model_id: str | None = Field(default=None, max_length=32, index=True)
    target_job_id: str | None = Field(default=None, max_length=32)
    target_step: int | None = Field(default=None, sa_type=BigInteger)
    #: As it was called when it was measured: it may be deleted afterwards.
    target_name: str = Field(max_length=200)
    #: An ``EvaluationRequest``: what is run, with every label and version named.
    request: dict[str, Any] = Field(sa_type=JsonColumn)
    #: Of the benchmarks in the request, so that nobody needs to take it apart: ["gsm8k", "custom"].
    benchmark_names: list[str] = Field(default_factory=list, sa_type=JsonColumn)
    #: By id, of the datasets that it measures on, as they were called: they may be deleted afterwards.
    dataset_names: dict[str, str] = Field(
        default_factory=dict, sa_type=JsonColumn, sa_column_kwargs={"server_default": "{}"}
    )
    #: When it was told to make room for a training; it is queued again when it has left.
    displaced_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: ``EvaluationResult.benchmarks`` and ``.manifest``, once it has succeeded. Only read as a whole.
    results: list[dict[str, Any]] | None = Field(default=None, sa_type=JSON)
    manifest: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    #: When the results were recorded.
    recorded_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class EvaluationScore(SQLModel, table=True):
    """One score of a finished evaluation, by which models are ranked and followed over time."""

    __tablename__ = "evaluation_scores"
    __table_args__ = (
        Index("ix_evaluation_scores_board", "label", "metric", "value"),
        Index("ix_evaluation_scores_model", "target_model_id"),
        Index("ix_evaluation_scores_checkpoint", "target_job_id", "target_step"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=_ROW_ID)
    evaluation_id: str = Field(foreign_key="evaluations.id", ondelete="CASCADE", max_length=32, index=True)
    label: str = Field(max_length=64)
    benchmark: str = Field(max_length=64)
    metric: str = Field(max_length=200)
    is_headline: bool = False
    #: None for a score over all problems.
    group_kind: str | None = Field(default=None, max_length=200)
    group_name: str | None = Field(default=None, max_length=500)
    value: float
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = Field(default="none", max_length=16)
    n: int = Field(sa_type=BigInteger)
    #: Hash of the order without its label, the data and, where problems are drawn, the seed: scores of
    #: one configuration can be compared.
    configuration: str = Field(max_length=64)
    #: The dataset of the platform that it was measured on; None for other benchmarks.
    dataset_id: str | None = Field(default=None, max_length=32)
    target_model_id: str | None = Field(default=None, max_length=32)
    target_job_id: str | None = Field(default=None, max_length=32)
    target_step: int | None = Field(default=None, sa_type=BigInteger)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class EvaluationLeftover(SQLModel, table=True):
    """A deleted evaluation (``ev_...``) or report (``rep_...``) whose files are to be removed."""

    __tablename__ = "evaluation_leftovers"

    id: str = Field(primary_key=True, max_length=32)
    requested_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
