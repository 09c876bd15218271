"""The reward of tool use as a term of a mixture: the calls of a response against those of the row."""

from trellis_train.agents.tooluse.scoring.reward import Scale, score
from trellis_train.agents.tooluse.scoring.settings import WEIGHTS, RewardSettings
from trellis_train.agents.tooluse.scoring.truth import GroundTruth
from trellis_train.rewards.sample import Sample


class ToolUseScorer:
    """Scores calls without running them; ``BadTruth`` for a row whose reference is none of tool use."""

    #: The five parts before their weights, and the sum of the penalties.
    part_names = (*WEIGHTS, "penalties")

    def __init__(self, scale: Scale = "signed", **options: float) -> None:
        """Take ``weight_*`` and ``penalty_*`` of the parts; ``BadRewardSettings`` for what cannot be."""
        self._scale: Scale = scale
        self._settings = RewardSettings.parse(_named(options, "weight_"), _named(options, "penalty_"))

    async def score(self, sample: Sample) -> float:
        """Between -1 and 1, or 0 and 1 on the scale ``display``."""
        return (await self.score_parts(sample))[0]

    async def score_parts(self, sample: Sample) -> tuple[float, dict[str, float]]:
        """The same, and what it is made of."""
        reward = score(sample.response, GroundTruth.parse(sample.answer), settings=self._settings)
        return reward.on(self._scale), {**reward.components, "penalties": sum(reward.penalties.values())}

    async def load(self) -> None:
        """There is nothing to load."""

    async def close(self) -> None:
        """Nothing is open."""


def _named(options: dict[str, float], prefix: str) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
