"""Queries on saved views."""

from collections.abc import Sequence

from sqlalchemy import delete
from sqlmodel import Session, col, func, select

from trellis_api.core.ids import is_id
from trellis_api.saved_views.models import SavedView

PREFIX = "vew"


def add_view(session: Session, view: SavedView) -> None:
    """Insert or update a view; IntegrityError if the name is taken."""
    session.add(view)
    session.flush()


def find_view(session: Session, *, view_id: str) -> SavedView | None:
    """Return the view with this id; None for anything that is not an id."""
    return session.get(SavedView, view_id) if is_id(view_id, prefix=PREFIX) else None


def list_views(session: Session, *, page: str, scope: str) -> Sequence[SavedView]:
    """Return the views of a page, by name."""
    query = select(SavedView).where(SavedView.page == page, SavedView.scope == scope)
    return session.exec(query.order_by(func.lower(SavedView.name), col(SavedView.id))).all()


def delete_view(session: Session, *, view_id: str) -> None:
    """Delete the row."""
    session.exec(delete(SavedView).where(col(SavedView.id) == view_id))
