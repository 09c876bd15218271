"""What machines measured of themselves."""

from datetime import datetime
from typing import Any

from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime


class MachineSample(SQLModel, table=True):
    """One look at a node; a worker takes one every ten seconds."""

    __tablename__ = "machine_samples"

    node: str = Field(primary_key=True, max_length=255)
    at: datetime = Field(primary_key=True, index=True, sa_type=UtcDateTime)
    #: By name: shares in percent, bytes, bytes a second, watts. What was not measured is missing.
    figures: dict[str, float] = Field(sa_type=JsonColumn)
    #: What the node has done since it was started; rates are differences of two samples.
    counters: dict[str, float] = Field(sa_type=JsonColumn)
    #: The largest processes; empty in samples that did not look at them.
    processes: list[dict[str, Any]] = Field(sa_type=JsonColumn)
