"""The table of models."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class Model(SQLModel, table=True):
    """One set of weights. ``path`` and the facts after it are None until the weights are here."""

    __tablename__ = "models"

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    description: str = Field(default="", max_length=2000)
    state: str = Field(max_length=16, index=True)
    state_reason: str | None = Field(default=None, max_length=2000)
    #: When the state last changed; a fetch that was lost is recognised by it.
    state_changed_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    source: dict[str, Any] = Field(sa_type=JsonColumn)
    lineage: dict[str, Any] = Field(sa_type=JsonColumn)
    #: Relative to the data root.
    path: str | None = Field(default=None, max_length=1024)
    architecture: str | None = Field(default=None, max_length=120)
    parameter_count: int | None = Field(default=None, sa_type=BigInteger)
    dtype: str | None = Field(default=None, max_length=32)
    context_length: int | None = Field(default=None, sa_type=BigInteger)
    vocabulary_size: int | None = Field(default=None, sa_type=BigInteger)
    has_chat_template: bool | None = Field(default=None)
    size_bytes: int | None = Field(default=None, sa_type=BigInteger)
    sha256: str | None = Field(default=None, max_length=64)
    sha256_kind: str | None = Field(default=None, max_length=16)
    warnings: list[dict[str, Any]] = Field(sa_type=JsonColumn)
    revision: str | None = Field(default=None, max_length=120)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
