"""Decides about votes: how they are kept, what they say of two models, and what is learned from them."""

from collections import Counter, defaultdict

from sqlmodel import Session

from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.core.texts import storable
from trellis_api.datasets import given_rows
from trellis_api.endpoints.errors import ModelUnknown
from trellis_api.endpoints.openai.names import find_lasting_name
from trellis_api.uploads.storage import StoredUpload
from trellis_api.votes import repository
from trellis_api.votes.errors import NoVotesToLearnFrom, VoteNotFound
from trellis_api.votes.models import Vote
from trellis_api.votes.schemas import (
    VoteAnswer,
    VoteCreate,
    VoteFilter,
    VoteMessage,
    VoteRead,
    VoteSettings,
    VoteVerdict,
    WinRate,
    WinRates,
)

_TURNED = {VoteVerdict.A: VoteVerdict.B, VoteVerdict.B: VoteVerdict.A}


def add(session: Session, *, request: VoteCreate, voter: str) -> Vote:
    """Keep a vote; of two models the one whose name comes first is a, whatever stood where."""
    a, b = (_name_lastingly(session, each) for each in (request.a, request.b))
    verdict = request.verdict
    if b.model < a.model:
        a, b, verdict = b, a, _TURNED.get(verdict, verdict)
    vote = Vote(
        id=new_id(repository.PREFIX),
        voter=voter,
        model_a=a.model,
        model_b=b.model,
        verdict=verdict.value,
        is_blind=request.is_blind,
        messages=[{"role": each.role, "content": storable(each.content)} for each in request.messages],
        answer_a=storable(a.text),
        answer_b=storable(b.text),
        settings=request.settings.model_dump(mode="json", exclude_none=True),
    )
    repository.add_vote(session, vote)
    return vote


def _name_lastingly(session: Session, answer: VoteAnswer) -> VoteAnswer:
    """Name what an alias or ``latest`` stands for now; what is not on this platform keeps its name."""
    try:
        return answer.model_copy(update={"model": find_lasting_name(session, answer.model)})
    except ModelUnknown:
        return answer


def present(vote: Vote) -> VoteRead:
    """Present a vote as clients see it."""
    return VoteRead(
        id=vote.id,
        voter=vote.voter,
        messages=[VoteMessage.model_validate(each) for each in vote.messages],
        a=VoteAnswer(model=vote.model_a, text=vote.answer_a),
        b=VoteAnswer(model=vote.model_b, text=vote.answer_b),
        verdict=VoteVerdict(vote.verdict),
        is_blind=vote.is_blind,
        settings=VoteSettings.model_validate(vote.settings),
        created_at=vote.created_at,
    )


def list_page(session: Session, wanted: VoteFilter, *, cursor: str | None, limit: int) -> Page[VoteRead]:
    """List one page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_votes(session, wanted, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=[present(row) for row in shown], next_cursor=next_cursor)


def delete(session: Session, *, vote_id: str) -> None:
    """Forget a vote; datasets that were made from it stay."""
    if repository.find_vote(session, vote_id=vote_id) is None:
        raise VoteNotFound(f"There is no vote '{vote_id[:40]}'.")
    repository.delete_vote(session, vote_id=vote_id)


def rate(session: Session, wanted: VoteFilter) -> WinRates:
    """Compute the win rates of all pairs that were voted on, with Wilson's 95% interval."""
    pairs: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for model_a, model_b, verdict, count in repository.count_verdicts(session, wanted):
        pairs[model_a, model_b][verdict] += count
    rates = [_rate(*models, counts) for models, counts in pairs.items()]
    rates.sort(key=lambda each: (-each.votes, each.model_a, each.model_b))
    return WinRates(items=rates[: repository.MAX_PAIRS])


def _rate(model_a: str, model_b: str, counts: Counter[str]) -> WinRate:
    wins_a, wins_b = counts[VoteVerdict.A], counts[VoteVerdict.B]
    from trellis_evaluation.statistics import wilson  # scipy: not before somebody asks

    decided = wins_a + wins_b
    interval = wilson(wins_a, decided) if decided else None
    return WinRate(
        model_a=model_a,
        model_b=model_b,
        wins_a=wins_a,
        wins_b=wins_b,
        ties=counts[VoteVerdict.TIE] + counts[VoteVerdict.NEITHER],
        votes=counts.total(),
        win_rate=wins_a / decided if decided else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def write_pairs(session: Session, settings: Settings, wanted: VoteFilter, *, filename: str) -> StoredUpload:
    """Write an upload with a preference row for each decided vote. Raises ``NoVotesToLearnFrom``.

    Ties, and votes on two answers that are the same, have nothing to learn from.
    """
    pairs = map(_as_pair, repository.iterate_decided(session, wanted))
    upload = given_rows.write_upload(settings, pairs, filename=filename)
    if upload is None:
        raise NoVotesToLearnFrom("No vote that is meant has a better and a worse answer.")
    return upload


def _as_pair(vote: Vote) -> dict[str, object]:
    chosen, rejected = vote.answer_a, vote.answer_b
    models = vote.model_a, vote.model_b
    if vote.verdict == VoteVerdict.B:
        chosen, rejected, models = rejected, chosen, models[::-1]
    return {
        "prompt": vote.messages,
        "chosen": [{"role": "assistant", "content": chosen}],
        "rejected": [{"role": "assistant", "content": rejected}],
        "chosen_model": models[0],
        "rejected_model": models[1],
        "vote": vote.id,
    }
