"""Which of a step's sampled responses shows best what an alarm of reward hacking is about."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import defer
from sqlmodel import Session, col, func, select
from trellis_recipes.answer_part import find_answer
from trellis_recipes.mapping import reward_mixture

from trellis_api.jobs import configuration
from trellis_api.jobs.models import RolloutSample

#: Sorted by it, the response that comes last is the example. The number is its rightness.
Rank = Callable[[RolloutSample, float], tuple[Any, ...]]
#: The alarm that tricks raise. Its metric is that of the trick that is its example.
PROBE_EARNS = "probe_earns"
_NGRAM = 4
#: Responses of a step that are compared at most.
_MAX_COMPARED = 256


def _score(sample: RolloutSample) -> float:
    return sample.score if sample.score is not None else float("-inf")


def share_repeated(text: str) -> float:
    """Return the share of the word n-grams that occurred earlier in the text."""
    words = text.split()
    grams = [tuple(words[start : start + _NGRAM]) for start in range(len(words) - _NGRAM + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0


_RANKS: dict[str, Rank] = {
    "reward_follows_length": lambda sample, _: (_score(sample), sample.response_tokens),
    "reward_parts_diverging": lambda sample, rightness: (-rightness, _score(sample)),
    "responses_repeat": lambda sample, _: (share_repeated(sample.response), sample.response_tokens),
    "reward_without_progress": lambda sample, _: (_score(sample), -sample.response_tokens),
    "format_only": lambda sample, rightness: (-rightness, _score(sample)),
    PROBE_EARNS: lambda sample, _: (_score(sample),),
}


def find_example(
    session: Session, *, job_id: str, code: str, metrics: Sequence[str | None], step: int
) -> RolloutSample | None:
    """Find a response of the step, or of the last step before it; None without one.

    It is a training response; of tricks that earn, that of the highest score among the tricks of ``metrics``
    (``probe/<trick>/mean``).
    """
    rank = _RANKS.get(code)
    if rank is None:
        return None
    place: list[Any] = [RolloutSample.job_id == job_id, RolloutSample.split == "train"]
    if code == PROBE_EARNS:
        tricks = [trick_of(metric) for metric in metrics if metric is not None]
        place = [
            RolloutSample.job_id == job_id,
            RolloutSample.split == "probe",
            col(RolloutSample.group).in_(tricks),
        ]
    newest = session.exec(
        select(func.max(RolloutSample.step)).where(*place, col(RolloutSample.step) <= step)
    ).one()
    found = _read(session, [*place, RolloutSample.step == newest]) if newest is not None else []
    if not found:
        return None
    rightness = _judge_rightness(session, job_id, found)
    return max(found, key=lambda sample: rank(sample, rightness[sample.id]))


def trick_of(metric: str) -> str:
    """Return the trick whose mean reward a metric is; its sampled responses are grouped by that name."""
    return metric.removeprefix("probe/").removesuffix("/mean")


def _judge_rightness(
    session: Session, job_id: str, samples: Sequence[RolloutSample]
) -> dict[int | None, float]:
    """Map the ids of responses to how right they are, by what the trainer judges them by.

    A response of which it isn't said is no example of a wrong one.
    """
    rewards = reward_mixture(configuration.find_params(session, job_id=job_id) or {})
    reported = {name for sample in samples for name in sample.reward_parts}
    answer, _ = find_answer([term["name"] for term in rewards], reported)
    told = {sample.id: None if answer is None else sample.reward_parts.get(answer) for sample in samples}
    return {number: math.inf if value is None else float(value) for number, value in told.items()}


def _read(session: Session, place: Sequence[Any]) -> Sequence[RolloutSample]:
    statement = (
        select(RolloutSample).where(*place).options(defer(RolloutSample.trajectory))  # type: ignore[arg-type]
    )
    return session.exec(statement.order_by(col(RolloutSample.id)).limit(_MAX_COMPARED)).all()
