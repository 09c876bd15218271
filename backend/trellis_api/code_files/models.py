"""What the tables of uploaded code have in common."""

from datetime import datetime

from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class CodeFile(SQLModel):
    """A Python file under a name of its own; its code never changes."""

    id: str = Field(primary_key=True, max_length=32)
    name: str = Field(max_length=120, unique=True)
    code: str
    sha256: str = Field(max_length=64)
    size_bytes: int
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
