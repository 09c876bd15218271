"""The tables of datasets, their versions, and the names of versions.

The rows lie in one content-addressed store for all datasets (``trellis_data.versions``); these tables say
which of its versions belong to which dataset. A version that no row here names is not visible.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now
from trellis_api.datasets.states import DatasetState


class Dataset(SQLModel, table=True):
    """One dataset. What it says of rows is that of ``head``, the tip of its branch ``main``."""

    __tablename__ = "datasets"

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    description: str = Field(default="", max_length=2000)
    state: str = Field(default=DatasetState.CREATING, max_length=16, index=True)
    #: The task that makes its first version.
    task_id: str | None = Field(default=None, max_length=32)
    #: Distinct licences of its rows: of their sources, of what they were made from, or as a person set them.
    licences: list[str] = Field(default_factory=list, sa_type=JsonColumn)
    #: Where the rows came from first: ``DatasetOrigin``.
    source: dict[str, Any] = Field(default_factory=dict, sa_type=JsonColumn)
    head: str | None = Field(default=None, max_length=64)
    format: str | None = Field(default=None, max_length=32)
    format_reason: str | None = Field(default=None, max_length=500)
    format_columns: dict[str, str] = Field(default_factory=dict, sa_type=JsonColumn)
    row_count: int = Field(default=0, sa_type=BigInteger)
    #: Rows by split.
    splits: dict[str, int] = Field(default_factory=dict, sa_type=JsonColumn)
    columns: list[dict[str, Any]] = Field(default_factory=list, sa_type=JsonColumn)
    warnings: list[dict[str, Any]] = Field(default_factory=list, sa_type=JsonColumn)
    #: Of the rows as JSON, whatever they take on disk.
    size_bytes: int = Field(default=0, sa_type=BigInteger)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
    updated_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class DatasetVersion(SQLModel, table=True):
    """A version of a dataset, as its history lists it."""

    __tablename__ = "dataset_versions"
    __table_args__ = (Index("ix_dataset_versions_newest", "dataset_id", "number"),)

    dataset_id: str = Field(
        sa_type=String(32),
        sa_column_args=[ForeignKey("datasets.id", ondelete="CASCADE")],
        primary_key=True,
    )
    #: The commit in the store.
    id: str = Field(primary_key=True, max_length=64)
    #: 1, 2, 3 ... in the order in which they were made, over all branches.
    number: int
    parents: list[str] = Field(default_factory=list, sa_type=JsonColumn)
    message: str
    author: str = Field(max_length=200)
    #: The hash of the rows: two versions with the same one hold the same.
    tree: str = Field(max_length=64)
    #: Rows by split.
    splits: dict[str, int] = Field(default_factory=dict, sa_type=JsonColumn)
    row_count: int = Field(sa_type=BigInteger)
    size_bytes: int = Field(sa_type=BigInteger)
    #: How it came about: import, pipeline, generate or rollback.
    origin: str = Field(max_length=16)
    task_id: str | None = Field(default=None, max_length=32, index=True)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class DatasetRef(SQLModel, table=True):
    """The name of a version: a branch moves on, a tag stays."""

    __tablename__ = "dataset_refs"

    dataset_id: str = Field(
        sa_type=String(32),
        sa_column_args=[ForeignKey("datasets.id", ondelete="CASCADE")],
        primary_key=True,
    )
    #: A branch and a tag cannot be called the same.
    name: str = Field(primary_key=True, max_length=100)
    kind: str = Field(max_length=8)
    version_id: str = Field(max_length=64)
    moved_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
