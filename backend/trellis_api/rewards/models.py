"""The tables of rewards."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel
from trellis_contracts.dry_run import DryRunState

from trellis_api.code_files.models import CodeFile
from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class RewardFile(CodeFile, table=True):
    """A person's own reward function."""

    __tablename__ = "reward_files"


class DryRun(SQLModel, table=True):
    """One dry run of a mixture on rows of a dataset."""

    __tablename__ = "reward_dry_runs"

    id: str = Field(primary_key=True, max_length=32)
    state: str = Field(default=DryRunState.QUEUED, max_length=16, index=True)
    rewards: list[dict[str, Any]] = Field(sa_type=JsonColumn)
    dataset_id: str = Field(max_length=32, index=True)
    dataset_version: str | None = Field(default=None, max_length=64)
    dataset_split: str | None = Field(default=None, max_length=100)
    columns: dict[str, str] = Field(default_factory=dict, sa_type=JsonColumn)
    row_count: int
    seed: int
    job_id: str | None = Field(default=None, max_length=32)
    step: int | None = None
    done: int = 0
    total: int = 0
    reason: str | None = None
    cause: str | None = Field(default=None, max_length=64)
    #: Only read as a whole, so PostgreSQL need not take it apart.
    result: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Last sign of life of the worker that carries it out.
    touched_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class SandboxProbe(SQLModel, table=True):
    """What a worker found out at its start: whether code can be isolated on its machine."""

    __tablename__ = "sandbox_probes"

    hostname: str = Field(primary_key=True, max_length=255)
    problem: str | None = Field(default=None, max_length=500)
    probed_at: datetime = Field(sa_type=UtcDateTime)
