"""Runs the calls of a response where its tools can be simulated, and scores it by what came of them.

The reward in training, the making of pairs and the evaluation all run calls here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trellis_train.agents.tooluse.data.simulator import Toolbox, answer_of
from trellis_train.agents.tooluse.scoring.components import Trace
from trellis_train.agents.tooluse.scoring.response import Call, Response, read_response
from trellis_train.agents.tooluse.scoring.reward import ToolUseReward, score_response
from trellis_train.agents.tooluse.scoring.settings import RewardSettings
from trellis_train.agents.tooluse.scoring.truth import GroundTruth

_DEFAULTS = RewardSettings()


@dataclass(frozen=True)
class Outcome:
    """What came of a call."""

    is_success: bool
    #: The one thing that only the result tells (``answer_of``); "" of a failure.
    result: str = ""


def run_calls(calls: Sequence[Call], toolbox: Toolbox) -> list[Outcome]:
    """Run calls in order; for tools that can be simulated."""
    outcomes = []
    for call in calls:
        result = toolbox.call(call.name, call.arguments)
        is_success = bool(result["success"])
        outcomes.append(
            Outcome(is_success, answer_of(toolbox.tools[call.name], result) if is_success else "")
        )
    return outcomes


def trace_calls(response: Response, truth: GroundTruth, toolbox: Toolbox) -> Trace:
    """Run and trace as many of the calls as the row allows; further calls count as a timeout.

    Where no call is wanted none is run: that a needless call works must not pay.
    """
    limit = max(truth.step_limit, len(truth.steps)) if truth.steps else 0
    outcomes = run_calls(response.calls[:limit], toolbox)
    return Trace(
        successes=tuple(outcome.is_success for outcome in outcomes),
        has_timed_out=bool(truth.steps) and len(response.calls) > limit,
        results=tuple(outcome.result for outcome in outcomes),
    )


def score_with_tools(
    text: str, truth: GroundTruth, toolbox: Toolbox | None, settings: RewardSettings = _DEFAULTS
) -> ToolUseReward:
    """Score a response with the tools of its row: by their schemas, and by results that can be simulated."""
    response = read_response(text)
    if toolbox is None:
        return score_response(response, truth, None, settings)
    is_run = settings.run_calls and bool(toolbox.tools) and toolbox.can_simulate
    trace = trace_calls(response, truth, toolbox) if is_run else None
    return score_response(response, truth, trace, settings, toolbox.tools)
