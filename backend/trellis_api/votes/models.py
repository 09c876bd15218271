"""The table of votes."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import UtcDateTime, utc_now


class Vote(SQLModel, table=True):
    """What somebody thought of two answers to the same prompt."""

    __tablename__ = "votes"
    __table_args__ = (
        Index("ix_votes_newest", "created_at", "id"),
        Index("ix_votes_models", "model_a", "model_b"),
    )

    id: str = Field(primary_key=True, max_length=32)
    voter: str = Field(max_length=120)
    #: Names that stay with their weights, no aliases and no ``latest``; ``model_a`` is not behind ``model_b``
    #: in the order of names.
    model_a: str = Field(max_length=200)
    model_b: str = Field(max_length=200)
    #: "a", "b", "tie" or "neither".
    verdict: str = Field(max_length=16)
    is_blind: bool
    #: What both were given: ``VoteMessage`` one after the other.
    messages: list[dict[str, Any]] = Field(sa_type=JSON)
    answer_a: str
    answer_b: str
    #: A ``VoteSettings``.
    settings: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
