"""Several responses to a prompt, the best against the worst."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trellis_train.agents.tooluse.running import score_with_tools
from trellis_train.agents.tooluse.scoring.settings import RewardSettings
from trellis_train.agents.tooluse.tasks import Task

#: Pairs that differ by less teach noise.
MIN_MARGIN = 0.1
SAMPLES_PER_PROMPT = 4
#: Scores are sums of hundredths and quotients; beyond this many digits they differ by rounding alone.
_DIGITS = 9


@dataclass(frozen=True)
class Pair:
    """Two responses to one prompt; scores from -1 to 1."""

    sample_id: str
    prompt: list[dict[str, str]]
    chosen: str
    rejected: str
    chosen_score: float
    rejected_score: float

    @property
    def margin(self) -> float:
        """How much better the chosen response is."""
        return round(self.chosen_score - self.rejected_score, _DIGITS)

    def as_row(self) -> dict[str, Any]:
        """Return the pair as a row of the format ``preference``, with scores, margin and sample ID."""
        return {
            "prompt": self.prompt,
            "chosen": [{"role": "assistant", "content": self.chosen}],
            "rejected": [{"role": "assistant", "content": self.rejected}],
            "chosen_score": self.chosen_score,
            "rejected_score": self.rejected_score,
            "margin": self.margin,
            "sample_id": self.sample_id,
        }


@dataclass
class PairReport:
    """What became of the prompts."""

    pairs: list[Pair] = field(default_factory=list)
    prompts: int = 0
    #: Prompts whose responses were all the same text.
    same: int = 0
    #: Prompts whose best and worst response lie too close together.
    close: int = 0

    def summary(self) -> dict[str, float | int]:
        """Return the counts, the mean margin and the mean score of the chosen responses."""
        count = len(self.pairs)
        mean_margin = sum(pair.margin for pair in self.pairs) / count if count else 0.0
        mean_chosen = sum(pair.chosen_score for pair in self.pairs) / count if count else 0.0
        return {
            "prompts": self.prompts,
            "pairs": count,
            "same": self.same,
            "close": self.close,
            "mean_margin": round(mean_margin, 6),
            "mean_chosen_score": round(mean_chosen, 6),
        }


def make_pairs(
    tasks: Iterable[Task],
    responses: Iterable[Sequence[str]],
    *,
    min_margin: float = MIN_MARGIN,
    settings: RewardSettings | None = None,
) -> PairReport:
    """Pair each prompt's best response with its worst, if their scores differ by ``min_margin`` or more.

    Responses that are the same text count once. Of equal scores the response that came first is taken, so
    that the same responses give the same pairs. Calls are run where the task's tools can be simulated.
    """
    report, settings = PairReport(), settings or RewardSettings()
    for task, texts in zip(tasks, responses, strict=True):
        report.prompts += 1
        distinct = list(dict.fromkeys(text.strip() for text in texts))
        if len(distinct) < 2:
            report.same += 1
            continue
        toolbox = None if task.tools is None else task.toolbox
        rewards = [score_with_tools(text, task.truth, toolbox, settings) for text in distinct]
        scores = [round(reward.signed, _DIGITS) for reward in rewards]
        best, worst = max(scores), min(scores)
        pair = Pair(
            sample_id=task.id,
            prompt=task.prompt,
            chosen=distinct[scores.index(best)],
            rejected=distinct[scores.index(worst)],
            chosen_score=best,
            rejected_score=worst,
        )
        if pair.margin < min_margin:
            report.close += 1
            continue
        report.pairs.append(pair)
    return report
