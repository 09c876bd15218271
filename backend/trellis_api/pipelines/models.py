"""The tables of saved pipelines."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class SavedPipeline(SQLModel, table=True):
    """A pipeline under a name; its versions hold what it does."""

    __tablename__ = "pipelines"

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    description: str = Field(default="", max_length=2000)
    #: Number of the newest version.
    version: int
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
    updated_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class PipelineVersion(SQLModel, table=True):
    """What a saved pipeline did at some time; it never changes."""

    __tablename__ = "pipeline_versions"

    pipeline_id: str = Field(
        sa_type=String(32),
        sa_column_args=[ForeignKey("pipelines.id", ondelete="CASCADE")],
        primary_key=True,
    )
    #: 1, 2, 3 ...
    number: int = Field(primary_key=True)
    #: A ``trellis_contracts.pipeline.Pipeline``.
    document: dict[str, Any] = Field(sa_type=JSON)
    #: Of the document: two versions with the same one do the same.
    hash: str = Field(max_length=64)
    message: str = Field(default="", max_length=2000)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
