"""What calling a tool gives: a function of the tool and the arguments, nothing else.

The same call has the same result in a dialog, in an episode and in an evaluation, in any process.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trellis_data.json_objects import BadLine, read_objects

from trellis_train.agents.argument_check import BadSchema, check_schema, find_argument_fault, plain_numbers

BAD_ARGUMENTS, UNKNOWN_TOOL = "BAD_ARGUMENTS", "UNKNOWN_TOOL"
_MOST_ITEMS = 3
_STATES = ("open", "active", "confirmed", "pending")
_MAX_MESSAGE = 200
#: What the results of each shape are made of (keys of ``returns``), and the arguments that they repeat.
_SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "items": (("prefix", "measure", "minimum", "maximum"), ()),
    "value": (("measure", "minimum", "maximum"), ()),
    "record": (("measure", "minimum", "maximum"), ("id",)),
    "file": (("object",), ("file_format",)),
    "confirmed": (("prefix",), ()),
}
_TYPES: dict[str, type] = {"minimum": int, "maximum": int}


class BadTools(ValueError):
    """A file of tools cannot be used; says why."""


class Toolbox:
    """Tools that can be called by name."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.tools = {str(row["name"]): row for row in rows}

    @property
    def can_simulate(self) -> bool:
        """Whether results can be made up: tools that people bring say nothing of theirs (``returns``)."""
        return all("returns" in row for row in self.tools.values())

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        """Return the result of a call; never raises for model input."""
        tool = self.tools.get(name)
        if tool is None:
            return _refuse(UNKNOWN_TOOL, f"there is no tool {name!r}"[:_MAX_MESSAGE])
        return simulate(tool, arguments)


def load_tools(path: Path) -> dict[str, dict[str, Any]]:
    """Load tools from a JSON Lines file, by name. Raises ``BadTools``."""
    tools: dict[str, dict[str, Any]] = {}
    try:
        for number, row in enumerate(read_objects(path), start=1):
            if not isinstance(row.get("name"), str):
                raise BadTools(f"tool {number} of {path} has no name")
            tools[row["name"]] = row
    except (OSError, BadLine) as error:
        raise BadTools(f"the tools in {path} cannot be read: {error}") from error
    return tools


def simulate(tool: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """Simulate a call of a tool (a row of ``agent_tools``); invalid arguments get an error result."""
    fault = find_argument_fault(tool["parameters"], arguments, most=_MAX_MESSAGE)
    if fault is not None:
        return _refuse(BAD_ARGUMENTS, fault)
    if not isinstance(arguments, Mapping):
        return _refuse(BAD_ARGUMENTS, "the arguments are not an object")
    known, numbers = tool["returns"], _Numbers(str(tool["name"]), arguments)
    shape = known["shape"]
    if shape == "items":
        most = _read_limit(arguments.get("limit"))
        items = [
            {"id": numbers.number(known["prefix"]), known["measure"]: numbers.between(known)}
            for _ in range(1 + numbers.take(most))
        ]
        return {"success": True, "count": len(items), "items": items}
    if shape == "value":
        return {"success": True, known["measure"]: numbers.between(known)}
    if shape == "record":
        state, value = _STATES[numbers.take(len(_STATES))], numbers.between(known)
        return {"success": True, "id": arguments["id"], "status": state, known["measure"]: value}
    if shape == "file":
        file = f"{known['object']}_{1000 + numbers.take(9000)}.{arguments['file_format']}"
        return {"success": True, "file": file, "rows": 1 + numbers.take(400)}
    if shape == "confirmed":
        number = arguments.get("id") or numbers.number(known["prefix"])
        return {"success": True, "id": number, "reference": f"R-{100000 + numbers.take(900000)}"}
    raise ValueError(f"tool {tool['name']!r} returns {shape!r}, which is not a known result shape")


def answer_of(tool: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Return the value that only the result reveals and an answer must mention; "" for a failure."""
    if not result.get("success"):
        return ""
    shape = tool["returns"]["shape"]
    if shape == "items":
        return str(result["items"][0]["id"])
    if shape in ("value", "record"):
        return str(result[tool["returns"]["measure"]])
    return str(result["file" if shape == "file" else "reference"])


def find_tool_fault(tool: Mapping[str, Any]) -> str | None:
    """Explain why a tool that claims to be simulated (``returns``) cannot be; None where it can."""
    known, parameters = tool.get("returns"), tool.get("parameters")
    if not isinstance(parameters, Mapping):
        return "its parameters are not an object"
    shape = known.get("shape") if isinstance(known, Mapping) else None
    if not isinstance(known, Mapping) or not isinstance(shape, str) or shape not in _SHAPES:
        return f"its returns.shape must be one of {', '.join(_SHAPES)}, not {str(shape)[:80]!r}"
    keys, repeated = _SHAPES[shape]
    if missing := [key for key in keys if not isinstance(known.get(key), _TYPES.get(key, str))]:
        return f"its returns.{missing[0]} is missing or of another type"
    if "minimum" in keys and known["minimum"] > known["maximum"]:
        return "its returns.minimum is above its returns.maximum"
    required = parameters.get("required")
    if missing := [name for name in repeated if not isinstance(required, list) or name not in required]:
        return f"results of the shape {shape} need the required parameter {missing[0]}"
    try:
        check_schema(parameters)
    except BadSchema as error:
        return f"its parameters cannot be used: {error}"
    return None


def _read_limit(limit: Any) -> int:
    """Return how many items a call asks for, from 1 to the most that there are."""
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    return int(min(_MOST_ITEMS, max(1, limit))) if is_number else _MOST_ITEMS


class _Numbers:
    """Numbers drawn from a call: the same call draws the same."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        text = json.dumps(
            [name, plain_numbers(arguments)], sort_keys=True, ensure_ascii=False, separators=(",", ":")
        )
        self._state = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")

    def take(self, bound: int) -> int:
        """Draw a number in [0, bound) from the hash; 256 bits are enough for one result."""
        self._state, taken = divmod(self._state, bound)
        return taken

    def number(self, prefix: str) -> str:
        return f"{prefix}-{1000 + self.take(9000)}"

    def between(self, known: Mapping[str, Any]) -> int:
        return int(known["minimum"]) + self.take(int(known["maximum"]) - int(known["minimum"]) + 1)


def _refuse(code: str, message: str) -> dict[str, Any]:
    return {"success": False, "error": {"code": code, "message": message}}
