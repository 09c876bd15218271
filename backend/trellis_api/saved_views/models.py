"""The table of saved views."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class SavedView(SQLModel, table=True):
    """A page's query string under a name."""

    __tablename__ = "saved_views"
    __table_args__ = (UniqueConstraint("page", "scope", "name", name="uq_saved_views_name"),)

    id: str = Field(primary_key=True, max_length=32)
    #: A ``SavedViewPage``.
    page: str = Field(max_length=16)
    #: Of charts, the recipe whose runs they are for; else empty.
    scope: str = Field(max_length=64)
    name: str = Field(max_length=120)
    query: str = Field(max_length=8000)
    created_by: str = Field(max_length=120)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    updated_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
