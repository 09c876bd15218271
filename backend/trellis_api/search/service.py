"""Searches all kinds for a text."""

from sqlmodel import Session

from trellis_api.endpoints.service import state_of
from trellis_api.search import repository
from trellis_api.search.schemas import FoundItem, FoundKind, SearchResult

#: Of a text; more narrow nothing down.
_MAX_WORDS = 8


def search(session: Session, *, text: str, limit: int) -> SearchResult:
    """Find at most ``limit`` of each kind with every word in the name or id; without text, the newest."""
    words = text.split()[:_MAX_WORDS]
    found = {kind: _find(session, kind, words, limit) for kind in FoundKind}
    return SearchResult(items=[item for items in found.values() for item in items])


def _find(session: Session, kind: FoundKind, words: list[str], limit: int) -> list[FoundItem]:
    if kind is FoundKind.ENDPOINT:
        return _find_endpoints(session, words, limit)
    rows = repository.find(session, source=repository.SOURCES[kind], words=words, limit=limit)
    return [
        FoundItem(kind=kind, id=ident, name=name, state=state, detail=detail, created_at=created_at)
        for ident, name, state, detail, created_at in map(tuple, rows)
    ]


def _find_endpoints(session: Session, words: list[str], limit: int) -> list[FoundItem]:
    return [
        FoundItem(
            kind=FoundKind.ENDPOINT,
            id=row.name,
            name=row.name,
            state=state_of(row, job),
            detail=None,
            created_at=row.created_at,
        )
        for row, job in repository.find_endpoints(session, words=words, limit=limit)
    ]
