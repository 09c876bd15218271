"""Tool schemas as people have them: in OpenAI's form, or as an MCP server lists them."""

import json
import re
from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema

from trellis_train.agents.argument_check import BadSchema, check_schema
from trellis_train.agents.environments import BadRequest
from trellis_train.agents.surrogates import find_surrogate

MAX_TOOLS = 200
INVALID = "tools_invalid"
_MAX_BYTES = 1024**2
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


def read_schemas(path: Path) -> list[ToolSchema]:
    """Read tools from a JSON file: a list, or an object with ``tools``; ``BadRequest`` lists all faults."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise BadRequest(f"The tool schemas are larger than {_MAX_BYTES // 1024} KiB.", INVALID)
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadRequest(f"The tool schemas are not valid JSON: {error}.", INVALID) from error
    listed = found.get("tools") if isinstance(found, dict) else found
    if not isinstance(listed, list) or not listed:
        raise BadRequest(
            'The tool schemas must be a list, or {"tools": [...]}, with at least one tool.', INVALID
        )
    if len(listed) > MAX_TOOLS:
        raise BadRequest(f"An environment can have at most {MAX_TOOLS} tools, not {len(listed)}.", INVALID)
    tools, faults = [], []
    for place, each in enumerate(listed):
        try:
            tools.append(read_schema(each))
        except BadRequest as error:
            faults.append(f"Tool {place + 1}: {error}")
    names = [tool.name for tool in tools]
    faults += [f"Two tools are called {name}." for name in sorted({n for n in names if names.count(n) > 1})]
    if faults:
        raise BadRequest(" ".join(faults), INVALID)
    return tools


def read_schema(entry: Any) -> ToolSchema:
    """Read OpenAI's ``{"type": "function", ...}``, the function alone, or MCP's ``{"inputSchema": ...}``."""
    if not isinstance(entry, dict):
        raise BadRequest("it is not a JSON object.")
    function = entry.get("function", entry)
    if not isinstance(function, dict):
        raise BadRequest("its function is not a JSON object.")
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadRequest(f"invalid name {str(name)[:80]!r}: use up to 64 letters, digits, _, . and -.")
    parameters = function.get("parameters", function.get("inputSchema"))
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise BadRequest(f"{name}: its parameters (or inputSchema) must be a JSON Schema of type object.")
    if foreign := _find_foreign_reference(parameters):
        raise BadRequest(f"{name}: its parameters refer to {foreign[:200]!r}; only '#/...' is supported.")
    try:
        check_schema(parameters)
    except BadSchema as error:
        raise BadRequest(f"{name}: its parameters are not a usable JSON Schema: {error}.") from error
    description = str(function.get("description") or "")
    if fault := find_surrogate([description, parameters]):
        raise BadRequest(f"{name}: {fault}.")
    return ToolSchema(
        name=name,
        description=description,
        parameters=parameters,
        ends_episode=function.get("ends_episode", entry.get("ends_episode")) is True,
    )


def _find_foreign_reference(schema: Any) -> str | None:
    """Return a reference that points outside the schema, or None."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key in ("$ref", "$dynamicRef"):
                if isinstance(found := value.get(key), str) and not found.startswith("#"):
                    return found
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return None


def find_shared_function(tools: list[ToolSchema]) -> str | None:
    """Name two tools that would have to share one function, in a sentence."""
    known: dict[str, str] = {}
    for tool in tools:
        function = function_name(tool.name)
        if function in known:
            return f"The tools {known[function]} and {tool.name} would share the function {function}."
        known[function] = tool.name
    return None


def function_name(tool: str) -> str:
    """Return the name of the Python function that implements a tool: its name with _ for . and -."""
    return re.sub(r"[.-]", "_", tool)
