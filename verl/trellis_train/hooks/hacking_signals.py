"""What tells of reward hacking: a reward that grows while what it stands for does not.

The backend's alarms watch these metrics (``trellis_api.jobs.alarms.rules``).
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from trellis_train.hooks.group_metrics import ACCURACY
from trellis_train.hooks.step_responses import StepResponses, places_by_group
from trellis_train.rewards.mixture import ERROR_KEY

if TYPE_CHECKING:
    from torch import Tensor

#: Correlation of length and score within groups, -1 to 1: what is paid for being longer, difficulty aside.
LENGTH_SCORE_CORRELATION = "training/length_score_correlation"
#: Share of a response's n-grams of tokens that it had before; the mean over a sample of the responses.
REPEATED_NGRAM_FRACTION = "training/repeated_ngram_fraction"
#: Mean of the reward that decides whether a response is right (the first of the mixture).
ANSWER_REWARD_MEAN = "training/answer_reward_mean"
#: Share of the responses that are paid although that reward is 0: for their format, their length ...
FORMAT_ONLY_FRACTION = "training/format_only_fraction"
#: Means of all rewards of a mixture, and of what a reward is made of.
PART_MEAN = "reward_parts/{name}/mean"

#: Fewer responses say nothing about a correlation.
MIN_RESPONSES = 16
NGRAM = 4
#: Repetition is counted in so many responses of a step, spread evenly, and in so many tokens of each.
MAX_COUNTED = 64
MAX_TOKENS = 4096


def measure_hacking(step: StepResponses, *, terms: Sequence[str]) -> dict[str, float]:
    """Compute the reward hacking signals of a step; ``terms``: the mixture's reward names, answer first.

    Empty ``terms``: the rewards are not ours (an agent's own).
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
    """Compute the means of rewards and their parts, and the share that a mixture pays for wrong answers."""
    is_told = bool(step.infos) and all(name in info for info in step.infos for name in terms)
    if not terms or not is_told:
        return {}
    names = sorted({name for info in step.infos for name in info} - {"score", ACCURACY, ERROR_KEY})
    means = {
        PART_MEAN.format(name=name): fmean(info[name] for info in step.infos)
        for name in names
        if all(name in info for info in step.infos)
    }
    if len(terms) == 1:
        # Without parts of its own, a single reward is the score.
        return means if len(means) > 1 else {}
    answer = terms[0]
    paid = [info[answer] == 0.0 and score > 0.0 for info, score in zip(step.infos, step.scores, strict=True)]
    return {
        **means,
        ANSWER_REWARD_MEAN: fmean(info[answer] for info in step.infos),
        FORMAT_ONLY_FRACTION: sum(paid) / len(paid),
    }
