"""``/search``: anything with a name or an id."""

from typing import Annotated

from fastapi import APIRouter, Query

from trellis_api.core.dependencies import ReadSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.texts import NO_NUL
from trellis_api.search import service
from trellis_api.search.schemas import SearchResult

router = APIRouter(prefix="/search", tags=["search"], responses={401: ERROR_RESPONSES[401]})


@router.get("", summary="Search by name or id", responses={422: ERROR_RESPONSES[422]})
def search(
    session: ReadSession,
    text: Annotated[
        str,
        Query(
            max_length=200,
            pattern=NO_NUL,
            description="Words that must all be part of the name or the id; empty: the newest.",
        ),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=20, description="Maximum matches of each kind.")] = 5,
) -> SearchResult:
    """Search jobs, datasets, models, evaluations, pipelines and everything else that has a name."""
    return service.search(session, text=text, limit=limit)
