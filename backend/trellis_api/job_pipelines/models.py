"""The tables of pipelines of jobs."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now
from trellis_api.job_pipelines.states import PipelineState, StageState


class JobPipeline(SQLModel, table=True):
    """Stages under a name. Whoever changes a stage holds the lock of this row."""

    __tablename__ = "job_pipelines"
    __table_args__ = (Index("ix_job_pipelines_newest", "created_at", "id"),)

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120)
    description: str = Field(default="", max_length=2000)
    #: As its stages make it (``states.of_pipeline``), kept for lists.
    state: str = Field(default=PipelineState.IDLE, max_length=16)
    #: Stages whose needs are met are begun; otherwise those that run are only watched to their end.
    is_active: bool = Field(default=False, index=True)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class PipelineStage(SQLModel, table=True):
    """One stage and what became of it."""

    __tablename__ = "job_pipeline_stages"

    pipeline_id: str = Field(
        primary_key=True, foreign_key="job_pipelines.id", ondelete="CASCADE", max_length=32
    )
    stage_id: str = Field(primary_key=True, max_length=64)
    position: int
    #: A ``StageCreate``; it never changes.
    document: dict[str, Any] = Field(sa_type=JSON)
    state: str = Field(default=StageState.WAITING, max_length=16)
    #: Run it although a stage with the same fingerprint has finished.
    is_forced: bool = False
    #: Of all that the stage is made from, as it was when it began.
    fingerprint: str | None = Field(default=None, max_length=64)
    #: The job, the evaluation that it carries out, and the model that came of it.
    job_id: str | None = Field(default=None, max_length=32, index=True)
    evaluation_id: str | None = Field(default=None, max_length=32)
    model_id: str | None = Field(default=None, max_length=32)
    #: Of a skipped stage: the pipeline in which the same was done.
    reused_from: str | None = Field(default=None, max_length=32)
    reason: str | None = Field(default=None, max_length=2000)
    cause: str | None = Field(default=None, max_length=64)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class StageOutcome(SQLModel, table=True):
    """What came of a stage that finished: the next one with the same fingerprint takes it over."""

    __tablename__ = "job_pipeline_outcomes"

    fingerprint: str = Field(primary_key=True, max_length=64)
    job_id: str = Field(max_length=32)
    evaluation_id: str | None = Field(default=None, max_length=32)
    model_id: str | None = Field(default=None, max_length=32)
    pipeline_id: str = Field(max_length=32)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
