"""Queries on shared conversations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete
from sqlmodel import Session, col, func, select, tuple_

from trellis_api.core.ids import is_id
from trellis_api.shared_conversations.models import SharedConversation

PREFIX = "shc"
#: Of a link's title.
_MAX_TITLE = 200


@dataclass
class SharedLink:
    """A link without what is behind it."""

    id: str
    #: The beginning of the first prompt.
    title: str
    created_at: datetime
    expires_at: datetime


def add_shared(session: Session, row: SharedConversation) -> None:
    """Insert a shared conversation."""
    session.add(row)
    session.flush()


def find_shared(session: Session, *, shared_id: str) -> SharedConversation | None:
    """Return the row with this id; None for anything that is not an id."""
    return session.get(SharedConversation, shared_id) if is_id(shared_id, prefix=PREFIX) else None


def list_links(
    session: Session, *, owner: str, now: datetime, before: tuple[datetime, str] | None, limit: int
) -> Sequence[SharedLink]:
    """Return a user's links that still open something, newest first, behind the position of the last seen.

    The database cuts the titles out: conversations are large.
    """
    created_at, shared_id = col(SharedConversation.created_at), col(SharedConversation.id)
    title = func.substr(col(SharedConversation.content)[("prompts", 0)].as_string(), 1, _MAX_TITLE)
    query = select(shared_id, title, created_at, col(SharedConversation.expires_at))
    query = query.where(SharedConversation.created_by == owner, SharedConversation.expires_at > now)
    if before is not None:
        query = query.where(tuple_(created_at, shared_id) < before)
    rows = session.exec(query.order_by(created_at.desc(), shared_id.desc()).limit(limit)).all()
    return [SharedLink(*row) for row in rows]


def find_first_expiry(session: Session, *, owner: str) -> tuple[int, datetime | None]:
    """Return how many links a user has, and when the first of them expires."""
    query = select(func.count(), func.min(SharedConversation.expires_at))
    count, first = session.exec(query.where(SharedConversation.created_by == owner)).one()
    return count, first


def delete_shared(session: Session, *, shared_id: str) -> None:
    """Delete the row."""
    session.exec(delete(SharedConversation).where(col(SharedConversation.id) == shared_id))


def delete_expired(session: Session, *, before: datetime) -> None:
    """Delete rows whose time is over."""
    session.exec(delete(SharedConversation).where(col(SharedConversation.expires_at) <= before))
