"""Tools, calls and results as text, in the form that Hermes and Qwen models are trained on.

Written into the contents of messages, they are what Qwen's chat template makes of ``tools`` and
``tool_calls``, token for token; and every trainer takes plain roles and texts.
https://github.com/NousResearch/Hermes-Function-Calling
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trellis_recipes.data.tool_calls import AFTER_TOOLS, BEFORE_TOOLS

#: Between the results of calls that were made in one turn: templates write those into one message.
_BETWEEN_RESULTS = "\n</tool_response>\n<tool_response>\n"


def write_system(text: str, tools: Iterable[Mapping[str, Any]]) -> str:
    """Write the system message with the callable tools (rows with name, description, parameters)."""
    written = "".join("\n" + _to_json(as_function(tool)) for tool in tools)
    return f"{text}\n\n{BEFORE_TOOLS}{written}{AFTER_TOOLS}" if written else text


def write_turn(text: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """Write an assistant message: its text, then its calls (each with name and arguments)."""
    written = [
        f'<tool_call>\n{{"name": "{call["name"]}", "arguments": {_to_json(call["arguments"])}}}\n</tool_call>'
        for call in calls
    ]
    return "\n".join([text, *written] if text else written)


def join_results(results: Sequence[str]) -> str:
    """Join the results of the calls of one turn into one message."""
    return _BETWEEN_RESULTS.join(results)


def as_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in OpenAI's function format, without the fields for the simulator."""
    return {
        "type": "function",
        "function": {name: tool[name] for name in ("name", "description", "parameters")},
    }


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
