"""The reward of tool use as a term of a mixture: the calls of a response against those of the row."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from trellis_train.agents.tooluse.data.simulator import Toolbox
from trellis_train.agents.tooluse.running import score_with_tools
from trellis_train.agents.tooluse.scoring.reward import Scale
from trellis_train.agents.tooluse.scoring.settings import WEIGHTS, RewardSettings
from trellis_train.agents.tooluse.scoring.truth import GroundTruth
from trellis_train.agents.tooluse.tasks import read_tools
from trellis_train.rewards.sample import Sample

_KEPT_TOOLBOXES = 512


class ToolUseScorer:
    """Scores calls, which it runs where their tools can be simulated.

    ``BadTruth`` for a row whose reference is none of tool use, ``BadTask`` for tools that cannot be read.
    """

    #: The five parts before their weights, and the sum of the penalties.
    part_names = (*WEIGHTS, "penalties")

    def __init__(self, scale: Scale = "signed", **options: float | bool) -> None:
        """Take ``weight_*`` and ``penalty_*`` of the parts, and whether arguments and results count.

        ``BadRewardSettings`` for what cannot be.
        """
        self._scale: Scale = scale
        self._settings = RewardSettings.parse_options(options)

    async def score(self, sample: Sample) -> float:
        """Return a score between -1 and 1, or 0 and 1 on the scale ``display``."""
        return (await self.score_parts(sample))[0]

    async def score_parts(self, sample: Sample) -> tuple[float, dict[str, float]]:
        """Return the score, its components and the penalties."""
        truth = GroundTruth.parse(sample.answer)
        reward = score_with_tools(sample.response, truth, find_toolbox(sample.row), self._settings)
        return reward.on(self._scale), {**reward.components, "penalties": sum(reward.penalties.values())}

    async def load(self) -> None:
        """Do nothing: there is nothing to load."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def find_toolbox(row: Mapping[str, Any]) -> Toolbox | None:
    """Return the tools that a row offers (``tools``), ready to be called; None if it has none."""
    tools = row.get("tools")
    if tools is None:
        return None
    return _make_toolbox(tools if isinstance(tools, str) else json.dumps(tools))


@lru_cache(maxsize=_KEPT_TOOLBOXES)
def _make_toolbox(text: str) -> Toolbox:
    """Make the toolbox of a row, which is read once for all responses to it."""
    return Toolbox(read_tools(text, "the row") or [])
