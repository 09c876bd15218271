"""Rows of alarms: one for each attempt and kind of alarm, kept when it is over."""

from datetime import datetime

from sqlalchemy import BigInteger, Float, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class Alarm(SQLModel, table=True):
    """What a rule found in the metrics of one attempt. Raised again, it is the same row."""

    __tablename__ = "job_alarms"
    __table_args__ = (Index("ix_job_alarms_active", "is_active", "job_id"),)

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    attempt: int = Field(primary_key=True)
    code: str = Field(primary_key=True)
    severity: str
    #: The metric in which it was seen; None where no metric says it (a run that stands still).
    metric: str | None = None
    #: Where it was raised (the last time), where it was first seen, and where it was seen last.
    step: int = Field(sa_type=BigInteger)
    first_step: int = Field(sa_type=BigInteger)
    last_step: int = Field(sa_type=BigInteger)
    #: The value seen last; None where it is no finite number.
    value: float | None = Field(default=None, sa_type=Float(53))
    threshold: float | None = Field(default=None, sa_type=Float(53))
    #: A sampled response that shows it; it may have been removed since.
    example_id: int | None = Field(default=None, sa_type=BigInteger)
    is_active: bool = True
    raised_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    cleared_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
