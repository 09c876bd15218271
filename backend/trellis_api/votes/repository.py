"""Queries on votes."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete
from sqlmodel import Session, and_, col, func, or_, select, tuple_

from trellis_api.core.ids import is_id
from trellis_api.endpoints.errors import ModelUnknown
from trellis_api.endpoints.openai.names import find_lasting_name
from trellis_api.votes.models import Vote
from trellis_api.votes.schemas import VoteFilter

PREFIX = "vot"
#: Pairs of models that a table of win rates may have.
MAX_PAIRS = 200
#: Votes in memory at once; one may have hundreds of thousands of characters.
_PAGE = 20


def add_vote(session: Session, vote: Vote) -> None:
    """Insert a vote."""
    session.add(vote)
    session.flush()


def find_vote(session: Session, *, vote_id: str) -> Vote | None:
    """Return the vote with this ID; None for anything that is not an ID."""
    return session.get(Vote, vote_id) if is_id(vote_id, prefix=PREFIX) else None


def delete_vote(session: Session, *, vote_id: str) -> None:
    """Delete the row."""
    session.exec(delete(Vote).where(col(Vote.id) == vote_id))


def list_votes(
    session: Session, wanted: VoteFilter, *, after: tuple[datetime, str] | None, limit: int
) -> Sequence[Vote]:
    """List votes, newest first."""
    query = select(Vote).where(*_conditions(session, wanted))
    if after:
        query = query.where(tuple_(col(Vote.created_at), col(Vote.id)) < after)
    newest_first = (col(Vote.created_at).desc(), col(Vote.id).desc())
    return session.exec(query.order_by(*newest_first).limit(limit)).all()


def iterate_decided(session: Session, wanted: VoteFilter) -> Iterator[Vote]:
    """Iterate over votes with a better and a worse answer, oldest first, a page at a time."""
    query = select(Vote).where(
        *_conditions(session, wanted),
        col(Vote.verdict).in_(("a", "b")),
        col(Vote.answer_a) != col(Vote.answer_b),
    )
    yield from session.exec(
        query.order_by(col(Vote.created_at), col(Vote.id)).execution_options(yield_per=_PAGE)
    )


def count_verdicts(session: Session, wanted: VoteFilter) -> Sequence[tuple[str, str, str, int]]:
    """Count votes by pair of models and verdict; a model against itself is left out."""
    query = (
        select(Vote.model_a, Vote.model_b, Vote.verdict, func.count())
        .where(*_conditions(session, wanted), col(Vote.model_a) != col(Vote.model_b))
        .group_by(Vote.model_a, Vote.model_b, Vote.verdict)
    )
    return session.exec(query).all()


def _conditions(session: Session, wanted: VoteFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    names = [_find_names(session, each) for each in wanted.models]
    if wanted.blind_only:
        found.append(col(Vote.is_blind).is_(True))
    if len(names) == 1:
        found.append(or_(col(Vote.model_a).in_(names[0]), col(Vote.model_b).in_(names[0])))
    elif names:
        pairs = (names, names[::-1])
        found.append(or_(*(and_(col(Vote.model_a).in_(a), col(Vote.model_b).in_(b)) for a, b in pairs)))
    return found


def _find_names(session: Session, called: str) -> set[str]:
    """Return the names under which votes on a model may be kept.

    Its own; and the one that it is called by, which earlier votes were kept under even where it moves.
    """
    try:
        return {called, find_lasting_name(session, called)}
    except ModelUnknown:
        return {called}
