"""The tables of environments and of the calls that persons made to try their tools."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index
from sqlmodel import Field, SQLModel
from trellis_contracts.environments import EnvironmentState, ToolCallState

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class Environment(SQLModel, table=True):
    """What an agent works on. The row is the intent: a worker claims it and makes the folder."""

    __tablename__ = "environments"
    __table_args__ = (Index("ix_environments_newest", "created_at", "id"),)

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    kind: str = Field(max_length=64)
    #: All of the kind's, defaults filled in.
    parameters: dict[str, Any] = Field(sa_type=JsonColumn)
    state: str = Field(default=EnvironmentState.QUEUED, max_length=16, index=True)
    reason: str | None = Field(default=None, max_length=2000)
    cause: str | None = Field(default=None, max_length=64)
    #: How often a worker has taken it up.
    attempt: int = 0
    #: An ``EnvironmentManifest``, from when the folder is there. Only read as a whole.
    manifest: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    #: Of the files: the same ones, the same hash.
    sha256: str | None = Field(default=None, max_length=64)
    size_bytes: int = Field(default=0, sa_type=BigInteger)
    #: By name within the environment ("" is the main one): the datasets that its rows became.
    dataset_ids: dict[str, str] = Field(default_factory=dict, sa_type=JsonColumn)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Last sign of life of the worker that makes it.
    touched_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class EnvironmentCall(SQLModel, table=True):
    """A tool that a person tries; a worker carries the call out."""

    __tablename__ = "environment_calls"
    __table_args__ = (Index("ix_environment_calls_newest", "environment_id", "created_at", "id"),)

    id: str = Field(primary_key=True, max_length=32)
    environment_id: str = Field(foreign_key="environments.id", ondelete="CASCADE", max_length=32)
    tool: str = Field(max_length=200)
    arguments: dict[str, Any] = Field(sa_type=JSON)
    state: str = Field(default=ToolCallState.QUEUED, max_length=16, index=True)
    #: A ``CallAnswer``, once it has succeeded.
    answer: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    reason: str | None = Field(default=None, max_length=2000)
    cause: str | None = Field(default=None, max_length=64)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    touched_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
