"""The table of reports."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class Report(SQLModel, table=True):
    """Evaluations written down; a worker makes the files."""

    __tablename__ = "reports"
    __table_args__ = (Index("ix_reports_newest", "created_at", "id"),)

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120)
    language: str = Field(max_length=8)
    #: A ``ReportCreate``.
    request: dict[str, Any] = Field(sa_type=JsonColumn)
    state: str = Field(max_length=16, index=True)
    state_reason: str | None = Field(default=None, max_length=2000)
    #: How often a worker has taken it up since it was asked for.
    attempts: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    #: When the state last changed; a report whose worker died is recognised by it.
    state_changed_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    #: Size in bytes by format: {"md": 12034}.
    files: dict[str, int] = Field(default_factory=dict, sa_type=JsonColumn)
    #: By format, why there is no file: {"pdf": {"code": "chromium_missing", "message": "..."}}.
    problems: dict[str, dict[str, str]] = Field(default_factory=dict, sa_type=JsonColumn)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
