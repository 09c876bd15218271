"""The table of transfers."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class Transfer(SQLModel, table=True):
    """Long work that takes a model elsewhere. The row is the intent: a worker claims and settles it."""

    __tablename__ = "transfers"
    __table_args__ = (
        Index("ix_transfers_newest", "created_at", "id"),
        Index("ix_transfers_model", "model_id", "created_at"),
        Index("ix_transfers_queue", "state", "created_at"),
    )

    id: str = Field(primary_key=True, max_length=32)
    kind: str = Field(max_length=16)
    state: str = Field(max_length=16)
    model_id: str = Field(max_length=32)
    #: As it was called then: it may be deleted.
    model_name: str = Field(max_length=120)
    #: A ``PushCreate`` or ``GgufCreate``; never holds a token.
    request: dict[str, Any] = Field(sa_type=JSON)
    #: A ``TransferProgress``.
    progress: dict[str, Any] | None = Field(default=None, sa_type=JsonColumn)
    #: A ``TransferResult``.
    result: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    reason: str | None = Field(default=None, max_length=2000)
    #: How often a worker has taken it up.
    attempt: int = 0
    #: How often in a row its worker has died.
    losses: int = 0
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Last sign of life of the worker that carries it out.
    touched_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
