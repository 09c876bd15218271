"""Queries on shared conversations."""

from datetime import datetime

from sqlalchemy import delete
from sqlmodel import Session, col, func, select

from trellis_api.core.ids import is_id
from trellis_api.shared_conversations.models import SharedConversation

PREFIX = "shc"


def add_shared(session: Session, row: SharedConversation) -> None:
    """Insert."""
    session.add(row)
    session.flush()


def find_shared(session: Session, *, shared_id: str) -> SharedConversation | None:
    """Return the row with this id; None for anything that is not an id."""
    return session.get(SharedConversation, shared_id) if is_id(shared_id, prefix=PREFIX) else None


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
