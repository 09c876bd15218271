"""The tables of files and jobs that clients of OpenAI's know; what they stand for lies in other tables."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class OpenAiFile(SQLModel, table=True):
    """A file that was uploaded for fine-tuning: an upload that is kept, and the dataset of its rows."""

    __tablename__ = "openai_files"
    __table_args__ = (Index("ix_openai_files_newest", "created_at", "id"),)

    id: str = Field(primary_key=True, max_length=32)
    upload_id: str = Field(max_length=32)
    dataset_id: str = Field(max_length=32)
    filename: str = Field(max_length=255)
    purpose: str = Field(max_length=32)
    size_bytes: int = Field(sa_type=BigInteger)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class FineTuningJob(SQLModel, table=True):
    """What was asked for, and the job of the platform that carries it out once its files are read."""

    __tablename__ = "fine_tuning_jobs"
    __table_args__ = (Index("ix_fine_tuning_jobs_newest", "created_at", "id"),)

    id: str = Field(primary_key=True, max_length=32)
    job_id: str | None = Field(
        default=None, foreign_key="jobs.id", ondelete="CASCADE", index=True, max_length=32
    )
    #: The ``FineTuningCreate`` that it was asked with.
    request: dict[str, Any] = Field(sa_type=JSON)
    model_id: str = Field(max_length=32)
    #: Of the model at its end.
    tuned_name: str = Field(max_length=120)
    seed: int = Field(sa_type=BigInteger)
    #: What every choice came to that was left to the platform.
    hyperparameters: dict[str, Any] = Field(default_factory=dict, sa_type=JsonColumn)
    #: Why it came to nothing before there was a job: code, message, param.
    error: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    #: When it ended without a job.
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    cancelled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Asked to rest: a stop that is no cancelling.
    paused_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
