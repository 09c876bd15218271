"""Tool calls as text: conversations in OpenAI's form become plain roles and contents.

A call is written into its turn's content, and the tools into the system's, as Hermes and Qwen models are
trained on them (https://github.com/NousResearch/Hermes-Function-Calling). So a row survives every file
format, trains with every engine, and is read back by the same parser that reads what the model writes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: Around the tools in a system's message, as Qwen 2.5's chat template writes them.
BEFORE_TOOLS = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
AFTER_TOOLS = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n"
    '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


class BadCalls(ValueError):
    """What a row has for calls or tools cannot be read; says why."""


def write_calls(content: str, calls: Any) -> str:
    """Append the tool calls (``tool_calls`` in OpenAI's format) to a turn's content. Raises ``BadCalls``."""
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise BadCalls("its tool_calls must be a list")
    written = [_write_call(call, number) for number, call in enumerate(calls, start=1) if call is not None]
    return "\n".join([content, *written] if content.strip() else written)


def offer_tools(messages: list[dict[str, Any]], tools: Any) -> list[dict[str, Any]]:
    """Add the tool descriptions to the conversation's system message. Raises ``BadCalls``.

    ``tools``: functions with or without OpenAI's envelope, or that list as JSON text, as Parquet files
    hold it. A system's message that shows them already stays as it is.
    """
    listed = _read_tools(tools)
    if not listed:
        return messages
    has_system = bool(messages) and messages[0]["role"] in ("system", "developer")
    text = messages[0]["content"] if has_system else ""
    if "<tools>" in text:
        return messages
    lines = "".join("\n" + json.dumps(each, ensure_ascii=False) for each in listed)
    offered = f"{BEFORE_TOOLS}{lines}{AFTER_TOOLS}"
    system = {"role": "system", "content": f"{text}\n\n{offered}" if text else offered}
    return [system, *(messages[1:] if has_system else messages)]


def read_call(call: Any, number: int) -> tuple[str, dict[str, Any]]:
    """Read name and arguments of a call in OpenAI's form, or of its function alone. Raises ``BadCalls``."""
    function = (call.get("function") or call) if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name:
        raise BadCalls(f"tool call {number} has no function name")
    arguments = without_gaps(function.get("arguments"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError as error:
            raise BadCalls(
                f"the arguments of its tool call {number} ({name}) are not JSON: {error}"
            ) from None
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise BadCalls(f"the arguments of its tool call {number} ({name}) are not an object")
    return name, dict(arguments)


def _write_call(call: Any, number: int) -> str:
    name, arguments = read_call(call, number)
    written = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{written}\n</tool_call>"


def _read_tools(tools: Any) -> list[dict[str, Any]]:
    if isinstance(tools, str):
        try:
            tools = json.loads(tools) if tools.strip() else []
        except ValueError as error:
            raise BadCalls(f"its tools are not JSON: {error}") from None
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise BadCalls("its tools must be a list of functions, or that list as JSON text")
    listed = []
    for number, tool in enumerate(tools, start=1):
        function = (tool.get("function") or tool) if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise BadCalls(f"tool {number} has no name")
        listed.append({"type": "function", "function": without_gaps(dict(function))})
    return listed


def without_gaps(value: Any) -> Any:
    """Remove the fields that Parquet gives every struct because another row has them."""
    if isinstance(value, Mapping):
        return {key: without_gaps(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_gaps(item) for item in value]
    return value
