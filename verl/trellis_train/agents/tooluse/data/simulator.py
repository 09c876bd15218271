"""What calling a tool gives: a function of the tool and the arguments, nothing else.

The same call has the same result in a dialog, in an episode and in an evaluation, in any process.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from trellis_data.json_objects import BadLine, read_objects

BAD_ARGUMENTS, UNKNOWN_TOOL = "BAD_ARGUMENTS", "UNKNOWN_TOOL"
_MOST_ITEMS = 3
_STATES = ("open", "active", "confirmed", "pending")
_MAX_MESSAGE = 200
_validators: dict[str, Draft202012Validator] = {}


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
        """The result of a call; never raises for what a model may send."""
        tool = self.tools.get(name)
        if tool is None:
            return _refuse(UNKNOWN_TOOL, f"there is no tool {name!r}"[:_MAX_MESSAGE])
        return simulate(tool, arguments)


def load_tools(path: Path) -> dict[str, dict[str, Any]]:
    """The tools of a file of JSON lines, by name. Raises ``BadTools``."""
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
    """The result of calling a tool (a row of ``agent_tools``); arguments against its schema are refused."""
    fault = find_fault(tool, arguments)
    if fault is not None:
        return _refuse(BAD_ARGUMENTS, fault)
    known, numbers = tool["returns"], _Numbers(str(tool["name"]), arguments)
    shape = known["shape"]
    if shape == "items":
        most = min(_MOST_ITEMS, int(arguments.get("limit", _MOST_ITEMS)))
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
    """What an answer has to mention: the one thing that only the result tells; "" of a failure."""
    if not result.get("success"):
        return ""
    shape = tool["returns"]["shape"]
    if shape == "items":
        return str(result["items"][0]["id"])
    if shape in ("value", "record"):
        return str(result[tool["returns"]["measure"]])
    return str(result["file" if shape == "file" else "reference"])


def find_fault(tool: Mapping[str, Any], arguments: Any) -> str | None:
    """What is wrong with the arguments of a call, in a sentence; None where nothing is."""
    schema = json.dumps(tool["parameters"], sort_keys=True)
    validator = _validators.get(schema)
    if validator is None:
        validator = _validators[schema] = Draft202012Validator(tool["parameters"])
    faults = sorted(validator.iter_errors(arguments), key=lambda fault: str(list(fault.path)))
    if not faults:
        return None
    where = ".".join(str(part) for part in faults[0].path)
    return f"{where}: {faults[0].message}"[:_MAX_MESSAGE] if where else faults[0].message[:_MAX_MESSAGE]


class _Numbers:
    """Numbers drawn from a call: the same call draws the same."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        # 5 and 5.0 are the same integer to JSON Schema.
        plain = {
            key: int(value) if isinstance(value, float) and value.is_integer() else value
            for key, value in arguments.items()
        }
        text = json.dumps([name, plain], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        self._state = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")

    def take(self, bound: int) -> int:
        """A number from 0 to below ``bound``; 256 bits are enough for all that one result asks for."""
        self._state, taken = divmod(self._state, bound)
        return taken

    def number(self, prefix: str) -> str:
        return f"{prefix}-{1000 + self.take(9000)}"

    def between(self, known: Mapping[str, Any]) -> int:
        return int(known["minimum"]) + self.take(int(known["maximum"]) - int(known["minimum"]) + 1)


def _refuse(code: str, message: str) -> dict[str, Any]:
    return {"success": False, "error": {"code": code, "message": message}}
