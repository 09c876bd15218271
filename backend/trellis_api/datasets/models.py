"""The table of datasets."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class Dataset(SQLModel, table=True):
    """One dataset; its rows lie in ``path`` and never change."""

    __tablename__ = "datasets"

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    description: str = Field(default="", max_length=2000)
    #: Relative to the data root.
    path: str = Field(max_length=512)
    format: str = Field(max_length=32)
    format_reason: str = Field(max_length=500)
    format_columns: dict[str, str] = Field(sa_type=JsonColumn)
    row_count: int = Field(sa_type=BigInteger)
    columns: list[dict[str, Any]] = Field(sa_type=JsonColumn)
    warnings: list[dict[str, Any]] = Field(sa_type=JsonColumn)
    size_bytes: int = Field(sa_type=BigInteger)
    sha256: str = Field(max_length=64)
    source_filename: str = Field(max_length=255)
    source_kind: str = Field(max_length=16)
    source_encoding: str | None = Field(default=None, max_length=16)
    source_size_bytes: int = Field(sa_type=BigInteger)
    source_sha256: str = Field(max_length=64)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
