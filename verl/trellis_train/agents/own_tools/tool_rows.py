"""Makes training rows from the dialogs and the benchmark that somebody brings with their tools.

Both are files of JSON lines in the form of ``trellis agent generate``; dialogs may also be conversations
(``messages``), and samples of the benchmark prompts with references (``prompt``, ``reward_model``). Every
call that a row holds must fit the tools.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema
from trellis_contracts.recipe import DataFormat
from trellis_data.json_objects import BadLine, read_objects
from trellis_recipes.data.conversion import Place, choose_conversion
from trellis_recipes.data.row_values import TOOLS_COLUMN, BadRow
from trellis_recipes.data.tool_calls import BadCalls, offer_tools, read_call

from trellis_train.agents.argument_check import find_argument_fault
from trellis_train.agents.environments import BadRequest
from trellis_train.agents.own_tools.simulator import join_faults
from trellis_train.agents.own_tools.tool_queries import make_query_rows
from trellis_train.agents.surrogates import find_surrogate
from trellis_train.agents.tooluse.formatting.formatter import format_dialog, task_type_of
from trellis_train.agents.tooluse.formatting.hermes import as_function
from trellis_train.agents.tooluse.formatting.task_types import BadDialog
from trellis_train.agents.tooluse.formatting.training_rows import TASKS, rl_row
from trellis_train.agents.tooluse.scoring.response import read_response
from trellis_train.agents.tooluse.scoring.reward import write_reference
from trellis_train.agents.tooluse.tasks import BadTask, read_task, read_tools

Row = dict[str, Any]
DIALOGS_INVALID, BENCHMARK_INVALID = "dialogs_invalid", "benchmark_invalid"
#: The platform's splits, by what rows call them.
_SPLITS = {
    "train": "train",
    "eval": "eval",
    "validation": "eval",
    "valid": "eval",
    "dev": "eval",
    "test": "test",
}
#: Of rows without splits, one in so many is held out.
_HELD_OUT = 10
#: What the readers of rows say themselves, and what a row of another form leads them to.
_SAID = (BadDialog, BadTask, BadRow, BadCalls)
_MALFORMED = (LookupError, TypeError, AttributeError, ValueError)


class OwnRows:
    """Rows for some tools."""

    def __init__(self, tools: Iterable[ToolSchema]) -> None:
        self._schemas = {tool.name: tool for tool in tools}
        self._tools: dict[str, Row] = {name: tool.model_dump() for name, tool in self._schemas.items()}
        self._convert = choose_conversion(DataFormat.MESSAGES, DataFormat.MESSAGES, {})

    def read_dialogs(self, path: Path) -> dict[str, list[Row]]:
        """Read rows for supervised training, by split. Raises ``BadRequest``."""
        return self._read(path, "dialogs", DIALOGS_INVALID, self._dialog)

    def read_benchmark(self, path: Path) -> dict[str, list[Row]]:
        """Read prompts with references (``verl-rl``), by split. Raises ``BadRequest``."""
        return self._read(path, "benchmark", BENCHMARK_INVALID, self._prompt)

    def make_queries(
        self, dialogs: dict[str, list[Row]], benchmark: dict[str, list[Row]]
    ) -> dict[str, list[Row]]:
        """Make rows for tool retrieval (``verl-rl``) from these, by split; none where they are too few."""
        return make_query_rows(self._tools, dialogs, benchmark)

    def _read(
        self, path: Path, what: str, code: str, make: Callable[[Row, int], Row]
    ) -> dict[str, list[Row]]:
        try:
            given = list(read_objects(path))
            splits = _split(given)
        except (OSError, BadLine, BadRow) as error:
            raise BadRequest(f"The {what} cannot be read: {error}.", code) from error
        made: dict[str, list[Row]] = {}
        faults = []
        for place, (row, split) in enumerate(zip(given, splits, strict=True)):
            if half := find_surrogate(row):
                faults.append(f"row {place + 1}: {half}")
                continue
            try:
                made.setdefault(split, []).append(make({**row, "split": split}, place))
            except _SAID as error:
                faults.append(f"row {place + 1}: {error}")
            except KeyError as error:
                faults.append(f"row {place + 1}: {error} is missing")
            except _MALFORMED as error:
                faults.append(f"row {place + 1}: it has an unexpected form ({error})")
        if faults:
            raise BadRequest(f"The {what} cannot be used: {join_faults(faults)}", code)
        if not made.get("train"):
            raise BadRequest(f"The {what} contain no rows to train on.", code)
        return made

    def _dialog(self, row: Row, place: int) -> Row:
        name = str(row.get("id") or f"dialog-{place + 1}")
        if "turns" in row:
            turns = [_with_read_calls(turn) for turn in row["turns"]]
            filled = {"tools": list(self._tools), **row, "id": name, "turns": turns}
            formatted = format_dialog(filled, self._tools)
            messages, kind = formatted["messages"], formatted["task_type"]
        else:
            # With the tools as the environment has them: the row says no more than which.
            offered = self._offered(self._named_tools(row, name))
            without = {column: value for column, value in row.items() if column != TOOLS_COLUMN}
            (converted,) = self._convert(without, Place(place, row["split"]))
            messages = offer_tools(converted["messages"], offered)
            kind = _task_type(row, messages)
        for message in messages:
            if message["role"] == "assistant":
                self._check_calls(message["content"])
        return {"id": name, "task_type": kind, "messages": messages}

    def _named_tools(self, row: Row, name: str) -> list[str] | None:
        """Return the names of the tools that a row offers; None if it does not say. Raises ``BadTask``."""
        tools = read_tools(row.get(TOOLS_COLUMN) or None, name)
        return [str(each["name"]) for each in tools] if tools else None

    def _offered(self, names: list[str] | None) -> list[Row]:
        """Return the tools as function schemas, by default all of them. Raises ``BadTask``."""
        names = list(self._tools) if names is None else names
        if unknown := sorted(set(names) - set(self._tools)):
            raise BadTask(f"unknown tool {unknown[0][:80]!r}")
        return [as_function(self._tools[each]) for each in names]

    def _prompt(self, row: Row, place: int) -> Row:
        name = str(row.get("id") or f"sample-{place + 1}")
        if "expected_calls" in row:
            made = self._request(row, name, place)
        else:
            made = self._given_prompt(row, name, place)
        self._check_calls(write_reference(read_task(made, name).truth))
        return made

    def _request(self, row: Row, name: str, place: int) -> Row:
        """Convert a row in the generator's format."""
        calls = _read_calls(row["expected_calls"])
        kind = row.get("kind") or ("planning" if len(calls) > 1 else "tool_selection" if calls else "timing")
        if kind not in TASKS:
            raise BadTask(f"unknown kind {str(kind)[:80]!r}; choose from {', '.join(TASKS)}")
        if not isinstance(row["query"], str):
            raise BadTask("its query is no text")
        answer = row.get("answer")
        if answer is not None and not isinstance(answer, str | int | float):
            raise BadTask("its answer is no text")
        filled = {"max_steps": None, "tools": list(self._tools), **row, "id": name, "kind": kind}
        filled |= {"expected_calls": calls, "answer": None if answer is None else str(answer).strip()}
        return rl_row(filled, self._tools, index=place)

    def _given_prompt(self, row: Row, name: str, place: int) -> Row:
        """Convert a row in verl's format; add the tools to its prompt if they are missing."""
        task = read_task(row, name)
        listed = task.truth.available_tools
        names = [str(each["name"]) for each in task.tools] if task.tools else listed or list(self._tools)
        offered = self._offered(names)
        if hidden := sorted((task.truth.tools | set(listed or ())) - set(names)):
            raise BadTask(f"the reference names the tool {hidden[0][:80]!r}, which the row does not offer")
        truth = task.truth.model_copy(update={"available_tools": listed or names})
        asked = next((each["content"] for each in task.prompt if each["role"] == "user"), "")
        return {
            "data_source": str(row.get("data_source") or "own_tools"),
            "prompt": offer_tools(list(task.prompt), offered),
            "ability": truth.task_type,
            "reward_model": {"style": "rule", "ground_truth": truth.to_text()},
            "extra_info": {
                "index": place,
                "id": name,
                "split": row["split"],
                "question": asked,
                "answer": write_reference(truth),
                "tools": json.dumps([self._tools[each] for each in names], ensure_ascii=False),
            },
        }

    def _check_calls(self, text: str) -> None:
        """Check that every call of a text names one of the tools and fits its schema. Raises ``BadTask``."""
        response = read_response(text)
        if response.bad_calls or response.is_unbalanced:
            raise BadTask("a tool call cannot be parsed")
        for call in response.calls:
            tool = self._schemas.get(call.name)
            if tool is None:
                raise BadTask(f"unknown tool {call.name[:80]!r}")
            if fault := find_argument_fault(tool.parameters, call.arguments):
                raise BadTask(f"the arguments of {call.name}: {fault}")


def _task_type(row: Row, messages: list[Row]) -> str:
    """Determine the task type of a conversation whose calls are written in its texts."""
    asked = next((each["content"] for each in messages if each["role"] == "user"), "")
    turns = [
        {
            "content": each["content"],
            "calls": [{"name": call.name} for call in read_response(each["content"]).calls],
        }
        if each["role"] == "assistant"
        else each
        for each in messages
        if each["role"] != "system"
    ]
    return task_type_of({"metadata": row.get("metadata"), "turns": turns, "goal": asked})


def _read_calls(calls: Any) -> list[Row]:
    """Read calls and parse arguments given as JSON text into objects. Raises ``BadCalls``."""
    read = [read_call(call, number) for number, call in enumerate(calls, start=1)]
    return [{"name": name, "arguments": arguments} for name, arguments in read]


def _with_read_calls(turn: Row) -> Row:
    calls = _read_calls(turn.get("calls") or ())
    content = turn.get("content")
    said = "" if content is None and calls else content
    return {**turn, "content": said, **({"calls": calls} if calls else {})}


def _split(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the split of each row: its own, or else hold out the last tenth. Raises ``BadRow``."""
    if not rows:
        raise BadRow("it is empty")
    if not any(row.get("split") for row in rows):
        held_out = max(1, len(rows) // _HELD_OUT) if len(rows) > 1 else 0
        return ["train"] * (len(rows) - held_out) + ["eval"] * held_out
    splits = []
    for place, row in enumerate(rows, start=1):
        name = str(row.get("split") or "").lower()
        if name not in _SPLITS:
            raise BadRow(f"row {place} has the unknown split {name[:80]!r}; choose from {', '.join(_SPLITS)}")
        splits.append(_SPLITS[name])
    return splits
