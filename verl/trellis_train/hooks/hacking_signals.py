"""What tells of reward hacking: a reward that grows while what it stands for does not.

The backend's alarms watch these metrics (``trellis_api.jobs.alarms.rules``).
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from trellis_recipes.answer_part import ACCURACY, find_answer

from trellis_train.hooks.step_responses import StepResponses, places_by_group
from trellis_train.rewards.mixture import ERROR_KEY

if TYPE_CHECKING:
    from torch import Tensor

#: Correlation of length and score within groups, -1 to 1: what is paid for being longer, difficulty aside.
LENGTH_SCORE_CORRELATION = "training/length_score_correlation"
#: Share of a response's n-grams of tokens that it had before; the mean over a sample of the responses.
REPEATED_NGRAM_FRACTION = "training/repeated_ngram_fraction"
#: Mean of what says whether a response is right (``find_answer``).
ANSWER_REWARD_MEAN = "training/answer_reward_mean"
#: Share of the responses that are paid although that is 0: for their format, their length ...
FORMAT_ONLY_FRACTION = "training/format_only_fraction"
#: Means of all rewards of a mixture, and of what a reward is made of, an agent's own too.
PART_MEAN = "reward_parts/{name}/mean"
#: Reported beside the score, but no part of it.
_NO_PARTS = frozenset({"score", ACCURACY, ERROR_KEY})

#: Fewer responses say nothing about a correlation.
MIN_RESPONSES = 16
NGRAM = 4
#: Repetition is counted in so many responses of a step, spread evenly, and in so many tokens of each.
MAX_COUNTED = 64
MAX_TOKENS = 4096


def measure_hacking(step: StepResponses, *, terms: Sequence[str]) -> dict[str, float]:
    """Compute the reward hacking signals of a step; ``terms``: the mixture's reward names, answer first.

    Empty ``terms``: the reward is an agent's own.
    """
    found = {
        LENGTH_SCORE_CORRELATION: correlate_within_groups(step.groups, step.written, step.scores),
        REPEATED_NGRAM_FRACTION: share_repeated(step.tokens),
        **measure_parts(step, terms),
    }
    return {name: value for name, value in found.items() if value is not None}


def correlate_within_groups(
    groups: Sequence[str], lengths: Sequence[float], scores: Sequence[float]
) -> float | None:
    """Compute Pearson's correlation after subtracting its group's mean from each value.

    None with fewer than ``MIN_RESPONSES`` responses in groups, or where lengths or scores do not differ.
    """
    pairs: list[tuple[float, float]] = []
    for found in places_by_group(groups):
        length = fmean(lengths[place] for place in found)
        score = fmean(scores[place] for place in found)
        pairs += [(lengths[place] - length, scores[place] - score) for place in found]
    spread = math.sqrt(sum(x * x for x, _ in pairs) * sum(y * y for _, y in pairs))
    if len(pairs) < MIN_RESPONSES or spread < 1e-9 or not math.isfinite(spread):
        return None
    return sum(x * y for x, y in pairs) / spread


def share_repeated(responses: "Sequence[Tensor]") -> float | None:
    """Average the share of repeated n-grams over a sample of responses (1-D token ids); None if empty."""
    stride = max(1, -(-len(responses) // MAX_COUNTED))
    shares = [_share_of(response[-MAX_TOKENS:]) for response in responses[::stride]]
    return fmean(shares) if shares else None


def _share_of(response: "Tensor") -> float:
    import torch

    if len(response) < NGRAM:
        return 0.0
    grams = response.unfold(0, NGRAM, 1)
    return 1.0 - torch.unique(grams, dim=0).shape[0] / grams.shape[0]


def measure_parts(step: StepResponses, terms: Sequence[str]) -> dict[str, float]:
    """Compute the means of rewards and their parts, and the share that is paid for wrong answers."""
    rows = step.infos if terms else step.earned
    names = {name for row in rows for name in row}
    named = {name: [row[name] for row in rows if name in row] for name in names}
    if not rows or not all(len(named.get(name, ())) == len(rows) for name in terms):
        return {}
    parts = {name: values for name, values in named.items() if name not in _NO_PARTS}
    # Without parts of its own, a single reward of the platform is the score.
    is_score = bool(terms) and len(parts) == 1
    means = {PART_MEAN.format(name=name): fmean(parts[name]) for name in sorted(parts) if not is_score}
    answer, is_graded = find_answer(terms, named)
    if answer is None:
        return means
    means[ANSWER_REWARD_MEAN] = fmean(named[answer])
    if is_graded:
        told = zip(rows, step.scores, strict=True)
        paid = [row[answer] == 0.0 and score > 0.0 for row, score in told if answer in row]
        means[FORMAT_ONLY_FRACTION] = sum(paid) / len(paid)
    return means
