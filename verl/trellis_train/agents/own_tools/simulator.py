"""Simulates tools by recorded results: a file of JSON lines in place of code.

A line is ``{"tool": ..., "arguments": {...}, "result": ...}``, or has ``error`` (``{"code", "message"}``)
instead of ``result``. One without ``arguments`` is what the tool returns to all other calls.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema
from trellis_data.json_objects import BadLine, read_objects

from trellis_train.agents.argument_check import find_argument_fault, plain_numbers
from trellis_train.agents.environments import Answer, BadRequest
from trellis_train.agents.surrogates import find_surrogate

INVALID = "simulator_invalid"
NOT_SIMULATED = "NOT_SIMULATED"
_KNOWN = {"tool", "arguments", "result", "error"}
#: Faults that an error names.
SHOWN_FAULTS = 5


class Simulator:
    """Recorded results by tool and arguments."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = {(str(row["tool"]), _key(row.get("arguments"))): row for row in rows}

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Return the result recorded for these arguments, else the tool's default result."""
        row = self._rows.get((tool, _key(arguments))) or self._rows.get((tool, _key(None)))
        if row is None:
            return Answer("No result is recorded for these arguments.", error=NOT_SIMULATED)
        if error := row.get("error"):
            return Answer(error["message"], error=error["code"])
        result = row["result"]
        return Answer(result, result_count=len(result) if isinstance(result, list) else None)


def read_recordings(path: Path, tools: list[ToolSchema]) -> list[dict[str, Any]]:
    """Read a file's rows, each checked against its tool's schema. Raises ``BadRequest`` with the faults."""
    known = {tool.name: tool for tool in tools}
    try:
        rows = list(read_objects(path))
    except (OSError, BadLine) as error:
        raise BadRequest(f"The simulator cannot be read: {error}.", INVALID) from error
    faults = [
        f"row {place}: {fault}" for place, row in enumerate(rows, 1) if (fault := _find_fault(row, known))
    ]
    if not faults:
        called = {row["tool"] for row in rows}
        faults = [f"no result of {name} is recorded" for name in known if name not in called]
        faults += _find_contradictions(rows)
    if faults:
        raise BadRequest(f"The simulator cannot be used: {join_faults(faults)}", INVALID)
    return rows


def join_faults(faults: list[str]) -> str:
    """Join the first faults into one sentence, with the number of remaining ones."""
    more = f"; and {len(faults) - SHOWN_FAULTS} more" if len(faults) > SHOWN_FAULTS else ""
    return "; ".join(faults[:SHOWN_FAULTS]) + more + "."


def _find_fault(row: Mapping[str, Any], tools: Mapping[str, ToolSchema]) -> str | None:
    tool, arguments = row.get("tool"), row.get("arguments")
    if half := find_surrogate(row):
        return half
    if not isinstance(tool, str) or tool not in tools:
        return f"unknown tool {str(tool)[:80]!r}"
    if unknown := sorted(set(row) - _KNOWN):
        return f"unknown key {unknown[0][:80]!r}; known are {', '.join(sorted(_KNOWN))}"
    if ("result" in row) == ("error" in row):
        return "it needs either result or error"
    if "error" in row and not _is_error(row["error"]):
        return 'error must be {"code": ..., "message": ...}'
    if arguments is None:
        return None
    if not isinstance(arguments, dict):
        return "arguments must be a JSON object"
    fault = find_argument_fault(tools[tool].parameters, arguments)
    return f"the arguments of {tool}: {fault}" if fault else None


def _find_contradictions(rows: list[dict[str, Any]]) -> list[str]:
    """Find rows that record different results of the same call: only one of them could answer it."""
    known: dict[tuple[str, str | None], int] = {}
    faults = []
    for place, row in enumerate(rows):
        first = known.setdefault((row["tool"], _key(row.get("arguments"))), place)
        if any(row.get(name) != rows[first].get(name) for name in ("result", "error")):
            faults.append(f"rows {first + 1} and {place + 1} record different results of the same call")
    return faults


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), str) and value[name] for name in ("code", "message")
    )


def _key(arguments: Mapping[str, Any] | None) -> str | None:
    return None if arguments is None else json.dumps(plain_numbers(arguments), sort_keys=True)
