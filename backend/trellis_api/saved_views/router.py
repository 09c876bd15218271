"""``/saved-views``: what a page shows, kept under a name."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from trellis_api.auth.dependencies import UserDep
from trellis_api.core.dependencies import ReadSession, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.saved_views import repository, service
from trellis_api.saved_views.schemas import (
    SavedViewCreate,
    SavedViewList,
    SavedViewPage,
    SavedViewRead,
    SavedViewUpdate,
    Scope,
)

CONFLICT: dict[int | str, dict[str, Any]] = {409: ERROR_RESPONSES[409]}
router = APIRouter(prefix="/saved-views", tags=["saved views"], responses=ERROR_RESPONSES)
ViewId = Annotated[str, Path(description="Id of the saved view.", pattern=id_pattern(repository.PREFIX))]


@router.get("", summary="List saved views")
def list_saved_views(
    session: ReadSession,
    page: SavedViewPage,
    scope: Annotated[Scope, Query(description="For charts: the recipe.")] = "",
) -> SavedViewList:
    """List the views of a page, by name; everybody sees the same ones."""
    return service.list_all(session, page=page, scope=scope)


@router.post("", status_code=201, summary="Save a view", responses=CONFLICT)
def save_view(body: SavedViewCreate, session: WriteSession, user: UserDep) -> SavedViewRead:
    """Save a page's query string under a name."""
    return service.present(service.save(session, request=body, user=user.name))


@router.patch("/{view_id}", summary="Change a saved view", responses=CONFLICT)
def update_saved_view(view_id: ViewId, body: SavedViewUpdate, session: WriteSession) -> SavedViewRead:
    """Rename a view, or replace what it shows."""
    return service.present(service.update(session, view_id=view_id, request=body))


@router.delete("/{view_id}", status_code=204, summary="Delete a saved view")
def delete_saved_view(view_id: ViewId, session: WriteSession) -> None:
    """Delete a view; links that were made from it still work."""
    service.delete(session, view_id=view_id)
