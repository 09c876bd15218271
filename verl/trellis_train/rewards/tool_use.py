"""The reward of tool use as a term of a mixture: the calls of a response against those of the row."""

from trellis_train.agents.tooluse.scoring.reward import WEIGHTS, Scale, score
from trellis_train.agents.tooluse.scoring.truth import BadTruth, GroundTruth
from trellis_train.rewards.sample import Sample

_PARTS = (*WEIGHTS, "penalties")


class ToolUseScorer:
    """Scores calls without running them; ``BadTruth`` for a row whose reference is none of tool use."""

    def __init__(self, scale: Scale = "signed") -> None:
        self._scale: Scale = scale

    async def score(self, sample: Sample) -> float:
        """Between -1 and 1, or 0 and 1 on the scale ``display``."""
        return score(sample.response, GroundTruth.parse(sample.answer)).on(self._scale)

    def parts(self, sample: Sample) -> dict[str, float]:
        """The five parts before their weights, and the sum of the penalties; all 0 without a reference."""
        try:
            reward = score(sample.response, GroundTruth.parse(sample.answer))
        except BadTruth:
            return dict.fromkeys(_PARTS, 0.0)
        return {**reward.components, "penalties": sum(reward.penalties.values())}

    async def load(self) -> None:
        """There is nothing to load."""

    async def close(self) -> None:
        """Nothing is open."""
