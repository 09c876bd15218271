"""Decides about saved views."""

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.saved_views import repository
from trellis_api.saved_views.errors import SavedViewNameTaken, SavedViewNotFound, TooManySavedViews
from trellis_api.saved_views.models import SavedView
from trellis_api.saved_views.schemas import (
    SavedViewCreate,
    SavedViewList,
    SavedViewPage,
    SavedViewRead,
    SavedViewUpdate,
)

#: Of one page and scope: a menu with more is no help.
MAX_VIEWS = 100


def save(session: Session, *, request: SavedViewCreate, user: str) -> SavedView:
    """Save a view; 409 where its name is taken or the page has ``MAX_VIEWS``."""
    page, scope = request.page.value, request.scope
    if len(repository.list_views(session, page=page, scope=scope)) >= MAX_VIEWS:
        raise TooManySavedViews(f"At most {MAX_VIEWS} views can be saved here; delete one first.")
    view = SavedView(
        id=new_id(repository.PREFIX),
        page=page,
        scope=scope,
        name=request.name,
        query=request.query,
        created_by=user,
    )
    return _store(session, view)


def update(session: Session, *, view_id: str, request: SavedViewUpdate) -> SavedView:
    """Rename a view, or replace what it shows."""
    view = find(session, view_id=view_id)
    if request.name is not None:
        view.name = request.name
    if request.query is not None:
        view.query = request.query
    view.updated_at = utc_now()
    return _store(session, view)


def find(session: Session, *, view_id: str) -> SavedView:
    """Return the view; 404 where there is none."""
    view = repository.find_view(session, view_id=view_id)
    if view is None:
        raise SavedViewNotFound(f"Saved view '{view_id}' not found.")
    return view


def delete(session: Session, *, view_id: str) -> None:
    """Delete a view; 404 where there is none."""
    find(session, view_id=view_id)
    repository.delete_view(session, view_id=view_id)


def list_all(session: Session, *, page: SavedViewPage, scope: str) -> SavedViewList:
    """List the views of a page, by name."""
    views = repository.list_views(session, page=page.value, scope=scope)
    return SavedViewList(items=[present(each) for each in views])


def present(view: SavedView) -> SavedViewRead:
    """Return the view as clients see it."""
    return SavedViewRead.model_validate(view, from_attributes=True)


def _store(session: Session, view: SavedView) -> SavedView:
    name = view.name  # the row cannot be read once its transaction has failed
    try:
        repository.add_view(session, view)
    except IntegrityError as error:
        raise SavedViewNameTaken(f"A view named '{name}' already exists.") from error
    return view
