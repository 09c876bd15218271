"""The tables of sweeps."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now
from trellis_api.sweeps.states import SweepState


class Sweep(SQLModel, table=True):
    """A training and what varies in it. Whoever changes a run holds the lock of this row."""

    __tablename__ = "sweeps"
    __table_args__ = (Index("ix_sweeps_newest", "created_at", "id"),)

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120)
    recipe: str = Field(max_length=64)
    #: A ``SweepCreate`` with all defaults filled in; it never changes.
    document: dict[str, Any] = Field(sa_type=JSON)
    state: str = Field(default=SweepState.RUNNING, max_length=16)
    #: Runs are proposed; otherwise those that run are only watched to their end.
    is_active: bool = Field(default=True, index=True)
    #: Why no more runs begin, where that was not a person's doing.
    reason: str | None = Field(default=None, max_length=2000)
    cause: str | None = Field(default=None, max_length=64)
    #: Seconds under way before the last stop, for the budget of hours.
    earlier_s: float = 0.0
    #: Runs before this one do not count where many failures end a sweep: they were before its last start.
    first_index: int = 0
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class SweepRun(SQLModel, table=True):
    """One run. ``index`` is 0, 1, 2 ... without gaps: a run is written once, whoever proposes it."""

    __tablename__ = "sweep_runs"

    sweep_id: str = Field(primary_key=True, foreign_key="sweeps.id", ondelete="CASCADE", max_length=32)
    index: int = Field(primary_key=True)
    #: Runs of one trial differ in nothing but the seed.
    trial: int
    seed: int = Field(sa_type=BigInteger)
    #: Parameter → value.
    values: dict[str, Any] = Field(sa_type=JSON)
    job_id: str | None = Field(default=None, max_length=32, index=True)
    #: The job has ended and ``value`` will not change any more.
    is_over: bool = False
    #: The metric: its last or best value so far, and the step where it was measured.
    value: float | None = None
    value_step: int | None = Field(default=None, sa_type=BigInteger)
    #: What was measured where the rule of early stopping looked: ``[{"step", "value", "mean", "best"}]``.
    rungs: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSON)
    pruned_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Stopped with the whole sweep: resuming the sweep resumes it.
    is_paused: bool = False
    #: Why its job could not be submitted.
    problem: str | None = Field(default=None, max_length=2000)
