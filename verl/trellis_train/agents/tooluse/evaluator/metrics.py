"""The five metrics of tool use for one response, and their mean, spread and count over many."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from trellis_train.agents.tooluse.data.simulator import Toolbox
from trellis_train.agents.tooluse.running import run_calls
from trellis_train.agents.tooluse.scoring import components
from trellis_train.agents.tooluse.scoring.arguments import match_arguments
from trellis_train.agents.tooluse.scoring.response import Response, read_response
from trellis_train.agents.tooluse.scoring.truth import GroundTruth

OVERALL = "overall"
WEIGHTS = {
    "tool_selection_accuracy": 0.30,
    "plan_success_rate": 0.25,
    "step_efficiency": 0.15,
    "timing_precision": 0.10,
    "end_to_end_success": 0.20,
}
METRICS = (OVERALL, *WEIGHTS)


def measure(text: str, truth: GroundTruth, toolbox: Toolbox) -> dict[str, float]:
    """Compute all metrics of a response, from 0 to 1, ``overall`` (their weighted mean) first."""
    response = read_response(text)
    values = {
        "tool_selection_accuracy": components.tool_f1(response, truth),
        "plan_success_rate": float(is_plan_right(response, truth, toolbox)),
        "step_efficiency": step_efficiency(response, truth),
        "timing_precision": components.timing(response, truth),
        "end_to_end_success": float(comes_to_the_answer(response, truth, toolbox)),
    }
    overall = math.fsum(WEIGHTS[name] * value for name, value in values.items())
    return {OVERALL: overall, **values}


def is_plan_right(response: Response, truth: GroundTruth, toolbox: Toolbox) -> bool:
    """Return whether the reference's tools are called in order, all tools exist, and calls are not too many.

    Other calls may stand between. Where no tool is wanted, none may be called.
    """
    names = [call.name for call in response.calls]
    if not truth.steps:
        return not names
    if len(names) > truth.step_limit or any(name not in toolbox.tools for name in names):
        return False
    following = iter(names)
    return all(name in following for name in truth.names)


def step_efficiency(response: Response, truth: GroundTruth) -> float:
    """Compute the reward's efficiency, but 0 if calls are wanted and none is made: that saves nothing."""
    if truth.steps and not response.calls:
        return 0.0
    return components.efficiency(response, truth)


def comes_to_the_answer(response: Response, truth: GroundTruth, toolbox: Toolbox) -> bool:
    """Tell whether all calls run in the simulator and the last result and the answer are the reference's.

    A call that cannot be read counts as one that fails. Where no tool is wanted, calling one is a failure.
    Of tools that cannot be simulated, the calls have to be the reference's, arguments included.
    """
    if response.bad_calls or response.is_unbalanced or bool(response.calls) != bool(truth.steps):
        return False
    if truth.answer is not None and not components.holds_answer(response.prose, truth.answer):
        return False
    if not toolbox.can_simulate:
        return [call.name for call in response.calls] == truth.names and all(
            match_arguments(call.arguments, step.arguments) == 1.0
            for call, step in zip(response.calls, truth.steps, strict=True)
        )
    outcomes = run_calls(response.calls, toolbox)
    if not all(outcome.is_success for outcome in outcomes):
        return False
    return truth.result is None or (outcomes[-1].result if outcomes else "") == truth.result


def summarise(
    measured: Iterable[Mapping[str, float]], names: Sequence[str] = METRICS
) -> dict[str, dict[str, float]]:
    """Return ``{metric: {mean, std, count}}``; std is the sample's (n - 1), and 0 for a single value."""
    rows = list(measured)
    summary = {}
    for name in names:
        values = [row[name] for row in rows]
        summary[name] = {
            "mean": statistics.fmean(values) if values else 0.0,
            "std": statistics.stdev(values) if len(values) > 1 else 0.0,
            "count": len(values),
        }
    return summary
