"""The table of shared conversations."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class SharedConversation(SQLModel, table=True):
    """What a link to the playground opens."""

    __tablename__ = "shared_conversations"
    __table_args__ = (
        Index("ix_shared_conversations_owner", "created_by", "expires_at"),
        Index("ix_shared_conversations_expires_at", "expires_at"),
    )

    id: str = Field(primary_key=True, max_length=32)
    #: A ``Conversation``.
    content: dict[str, Any] = Field(sa_type=JSON)
    created_by: str = Field(max_length=120)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)
