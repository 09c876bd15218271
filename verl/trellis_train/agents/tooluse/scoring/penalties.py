"""What is taken off a tool-use reward: each fault once, but redundant calls twice at most."""

from collections.abc import Mapping

from trellis_train.agents.tooluse.scoring.components import Trace, find_repeats, well_formed
from trellis_train.agents.tooluse.scoring.response import Response
from trellis_train.agents.tooluse.scoring.settings import PENALTIES
from trellis_train.agents.tooluse.scoring.truth import GroundTruth

MOST_REDUNDANT = 2


def find_wrong_tools(response: Response, truth: GroundTruth) -> list[str]:
    """Find tools that exist and were called though the reference does not; in the order of the calls."""
    invented = set(find_invented_tools(response, truth))
    names = (call.name for call in response.calls)
    return [name for name in dict.fromkeys(names) if name not in truth.tools and name not in invented]


def find_invented_tools(response: Response, truth: GroundTruth) -> list[str]:
    """Find tools that were called but do not exist; none where the existing names are unknown."""
    if truth.available_tools is None:
        return []
    known = truth.tools | set(truth.available_tools)
    return [name for name in dict.fromkeys(call.name for call in response.calls) if name not in known]


def find_penalties(
    response: Response, truth: GroundTruth, trace: Trace | None, costs: Mapping[str, float] = PENALTIES
) -> dict[str, float]:
    """Return the penalties that apply, by name, each below 0."""
    redundant = min(MOST_REDUNDANT, find_repeats(response.calls, truth).duplicates)
    found = {
        "wrong_tool": costs["wrong_tool"] * bool(find_wrong_tools(response, truth)),
        "redundant_call": costs["redundant_call"] * redundant,
        "format_error": costs["format_error"] * (well_formed(response, truth) < 1.0),
        "timeout": costs["timeout"] * (trace is not None and trace.has_timed_out),
        "hallucinated_tool": costs["hallucinated_tool"] * bool(find_invented_tools(response, truth)),
    }
    return {name: value for name, value in found.items() if value}
