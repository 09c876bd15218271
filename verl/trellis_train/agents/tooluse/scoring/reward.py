"""The reward of a response that calls tools: five weighted parts, less the penalties."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.tooluse.scoring import components
from trellis_train.agents.tooluse.scoring.arguments import Schemas
from trellis_train.agents.tooluse.scoring.components import Trace
from trellis_train.agents.tooluse.scoring.feedback import Language, write_feedback
from trellis_train.agents.tooluse.scoring.penalties import find_penalties
from trellis_train.agents.tooluse.scoring.response import Response, read_response
from trellis_train.agents.tooluse.scoring.settings import WEIGHTS, RewardSettings
from trellis_train.agents.tooluse.scoring.truth import GroundTruth

_DEFAULTS = RewardSettings()
#: ``signed`` (-1 to 1) is for pairs and training: at 0 to 1 all bad responses would be equal.
Scale = Literal["signed", "display"]


@dataclass(frozen=True)
class ToolUseReward:
    """A reward with all that it was made of."""

    response: Response
    truth: GroundTruth
    trace: Trace | None
    #: By name, each 0 to 1, before its weight.
    components: dict[str, float]
    #: By name, each below 0; those that do not apply are left out.
    penalties: dict[str, float] = field(default_factory=dict)
    #: By name, shares of 1.
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    #: The tools of the row, where they are known.
    tools: Schemas = field(default_factory=dict)
    compares_arguments: bool = True

    @property
    def unclipped(self) -> float:
        """The weighted parts and the penalties together."""
        weighted = [self.weights[name] * value for name, value in self.components.items()]
        # Exactly 1 where all parts are: from there on a response counts as correct.
        return math.fsum([*weighted, *self.penalties.values()])

    @property
    def signed(self) -> float:
        """Between -1 and 1."""
        return min(1.0, max(-1.0, self.unclipped))

    @property
    def total(self) -> float:
        """Between 0 and 1, as it is shown."""
        return min(1.0, max(0.0, self.unclipped))

    def on(self, scale: Scale) -> float:
        """Return the value on one of the two scales."""
        return self.signed if scale == "signed" else self.total

    def feedback(self, language: Language = "en") -> str:
        """Describe what was right and what was wrong, one sentence each."""
        return write_feedback(
            self.response,
            self.truth,
            self.penalties,
            language,
            trace=self.trace,
            tools=self.tools if self.compares_arguments else None,
        )


def score(
    text: str,
    truth: GroundTruth,
    trace: Trace | None = None,
    settings: RewardSettings = _DEFAULTS,
    tools: Schemas | None = None,
) -> ToolUseReward:
    """Score a response; any text is scored, the empty one too.

    ``trace`` says what came of running its calls, where they were run; ``tools`` are those of the row by
    name, whose schemas the arguments have to fit.
    """
    return score_response(read_response(text), truth, trace, settings, tools)


def score_response(
    response: Response,
    truth: GroundTruth,
    trace: Trace | None = None,
    settings: RewardSettings = _DEFAULTS,
    tools: Schemas | None = None,
) -> ToolUseReward:
    """Compute the reward of a response that is already parsed."""
    known = tools or {}
    accuracy = (
        components.tool_accuracy(response, truth, known)
        if settings.compare_arguments
        else components.tool_f1(response, truth)
    )
    return ToolUseReward(
        response=response,
        truth=truth,
        trace=trace,
        components={
            "completion": components.completion(response, truth, trace),
            "tool_f1": accuracy,
            "efficiency": components.efficiency(response, truth),
            "timing": components.timing(response, truth),
            "format": components.well_formed(response, truth),
        },
        penalties=find_penalties(response, truth, trace, settings.penalties),
        weights=settings.weights,
        tools=known,
        compares_arguments=settings.compare_arguments,
    )


def write_reference(truth: GroundTruth) -> str:
    """Return the response with the maximum reward: the reference's calls, then its answer."""
    calls = [render_tool_call(step.name, step.arguments or {}) for step in truth.steps]
    return "\n".join([*calls, *([truth.answer] if truth.answer is not None else [])])
