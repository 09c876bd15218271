"""The table of data tasks."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel
from trellis_contracts.data_tasks import DataTaskState

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class DataTask(SQLModel, table=True):
    """Long work on a dataset. The row is the intent: a worker claims it and settles it."""

    __tablename__ = "data_tasks"
    __table_args__ = (
        Index("ix_data_tasks_newest", "dataset_id", "created_at", "id"),
        Index("ix_data_tasks_queue", "state", "created_at"),
    )

    id: str = Field(primary_key=True, max_length=32)
    kind: str = Field(max_length=16)
    #: What a run of a pipeline is for: pipeline, quality or duplicates; None for other kinds.
    purpose: str | None = Field(default=None, max_length=16)
    state: str = Field(default=DataTaskState.QUEUED, max_length=16)
    #: The dataset that it reads, or makes.
    dataset_id: str = Field(max_length=32)
    #: The version that it reads; None for one that makes the first.
    version_id: str | None = Field(default=None, max_length=64)
    #: A ``TaskRequest``.
    request: dict[str, Any] = Field(sa_type=JSON)
    #: A ``DataTaskProgress``.
    progress: dict[str, Any] = Field(default_factory=dict, sa_type=JsonColumn)
    #: What the kind leaves: ``data_tasks.schemas`` names it. Only read as a whole.
    result: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    #: The version that it made, if it made one, and of which dataset.
    made_version_id: str | None = Field(default=None, max_length=64)
    made_dataset_id: str | None = Field(default=None, max_length=32, index=True)
    reason: str | None = None
    cause: str | None = Field(default=None, max_length=64)
    #: How often a worker has taken it up.
    attempt: int = 0
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Last sign of life of the worker that carries it out.
    touched_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
