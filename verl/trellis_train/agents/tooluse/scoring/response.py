"""A response as the scoring sees it: calls in order, faults of form, and the prose around them."""

from collections.abc import Collection
from dataclasses import dataclass

from trellis_train.agents.episode.tool_calls import CallFault, ParsedCall, parse_tool_calls
from trellis_train.rewards.answers import after_thinking

Call = ParsedCall


@dataclass(frozen=True)
class Response:
    """What a model wrote, after its thinking."""

    #: Those that can be read, in order, duplicates included.
    calls: tuple[Call, ...]
    #: Calls in paired tags that are no JSON with a name and arguments.
    bad_calls: int
    is_unbalanced: bool
    prose: str

    def has_call_in_prose(self, known_tools: Collection[str]) -> bool:
        """Tell whether a call is outside of the tags: as JSON, or as ``tool(``."""
        name = self.prose.find('"name"')
        if name >= 0 and self.prose.find('"arguments"', name) > name:
            return True
        return any(f"{tool}(" in self.prose for tool in known_tools)


def read_response(text: str) -> Response:
    """Read any text; what stands before the last ``</think>`` does not count."""
    parsed = parse_tool_calls(after_thinking(text))
    unclosed = sum(broken.fault is CallFault.UNCLOSED for broken in parsed.broken)
    return Response(
        calls=tuple(parsed.calls),
        bad_calls=len(parsed.broken) - unclosed,
        is_unbalanced=bool(unclosed or parsed.stray_closings),
        prose=parsed.prose,
    )
