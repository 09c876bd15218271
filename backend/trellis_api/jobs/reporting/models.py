"""The table of jobs whose metrics are sent to a service outside the platform."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime


class JobReport(SQLModel, table=True):
    """What was asked for (``ReportTo``), and how far the metrics were sent. It never holds a key."""

    __tablename__ = "job_reports"
    __table_args__ = (Index("ix_job_reports_due", "done_at", "due_at"),)

    job_id: str = Field(primary_key=True, foreign_key="jobs.id", ondelete="CASCADE")
    settings: dict[str, Any] = Field(sa_type=JSON)
    #: The service's id of the run: the same for all attempts.
    run_id: str = Field(max_length=64)
    url: str | None = Field(default=None, max_length=2000)
    sent_step: int | None = Field(default=None, sa_type=BigInteger)
    #: When all was sent or sending was given up; None again where the job is resumed.
    done_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    #: Why nothing can be sent now.
    problem: str | None = Field(default=None, max_length=500)
    #: Attempts that failed in a row, and when the next may be made.
    failures: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    due_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
