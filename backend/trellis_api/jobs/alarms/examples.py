"""Which of a step's sampled responses shows best what an alarm of reward hacking is about."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import Session, col, func, select
from trellis_contracts.rewards import CORRECTNESS

from trellis_api.jobs.models import RolloutSample

#: Sorted by it, the response that comes last is the example.
Rank = Callable[[RolloutSample], tuple[Any, ...]]
_NGRAM = 4
#: Responses of a step that are compared at most.
_MAX_COMPARED = 256


def _score(sample: RolloutSample) -> float:
    return sample.score if sample.score is not None else float("-inf")


def _rightness(sample: RolloutSample) -> float:
    """Return what the rewards, or the agent, say of whether the response is right."""
    parts = sample.reward_parts
    told = [parts[name] for name in CORRECTNESS if parts.get(name) is not None]
    return float(told[0]) if told else 0.0


def share_repeated(text: str) -> float:
    """Return the share of the word n-grams that occurred earlier in the text."""
    words = text.split()
    grams = [tuple(words[start : start + _NGRAM]) for start in range(len(words) - _NGRAM + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0


_RANKS: dict[str, Rank] = {
    "reward_follows_length": lambda sample: (_score(sample), sample.response_tokens),
    "reward_parts_diverging": lambda sample: (-_rightness(sample), _score(sample)),
    "responses_repeat": lambda sample: (share_repeated(sample.response), sample.response_tokens),
    "reward_without_progress": lambda sample: (_score(sample), -sample.response_tokens),
    "format_only": lambda sample: (-_rightness(sample), _score(sample)),
    "probe_earns": lambda sample: (_score(sample),),
}


def find_example(session: Session, *, job_id: str, code: str, metric: str | None, step: int) -> int | None:
    """Find the id of a response of the step, or of the last step before it; None without one.

    It is a training response; of a trick that earns, the trick (``probe/<trick>/mean``).
    """
    rank = _RANKS.get(code)
    if rank is None:
        return None
    place = [RolloutSample.job_id == job_id, RolloutSample.split == "train"]
    if code == "probe_earns":
        trick = (metric or "").removeprefix("probe/").removesuffix("/mean")
        place = [RolloutSample.job_id == job_id, RolloutSample.split == "probe", RolloutSample.group == trick]
    newest = session.exec(
        select(func.max(RolloutSample.step)).where(*place, col(RolloutSample.step) <= step)
    ).one()
    found = _read(session, [*place, RolloutSample.step == newest]) if newest is not None else []
    return max(found, key=rank).id if found else None


def _read(session: Session, place: Sequence[bool]) -> Sequence[RolloutSample]:
    statement = (
        select(RolloutSample).where(*place).options(defer(RolloutSample.trajectory))  # type: ignore[arg-type]
    )
    return session.exec(statement.order_by(col(RolloutSample.id)).limit(_MAX_COMPARED)).all()
