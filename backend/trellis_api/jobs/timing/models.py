"""When the steps of a job were reported, and timelines of some of them."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime


class StepTime(SQLModel, table=True):
    """When the metrics of a step were measured: it ties steps to the time of day."""

    __tablename__ = "job_step_times"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    step: int = Field(primary_key=True, sa_type=BigInteger)
    attempt: int
    at: datetime = Field(sa_type=UtcDateTime)


class StepTimeline(SQLModel, table=True):
    """What processes did during one step; the run tells it of a bounded number of steps."""

    __tablename__ = "job_step_timelines"

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    step: int = Field(primary_key=True, sa_type=BigInteger)
    attempt: int
    #: A ``TimelineEvent``. Only read as a whole.
    timeline: dict[str, Any] = Field(sa_type=JSON)
