"""Rows that ask for tool calls, as sampling, pairs and evaluation read them: prompt, reference, tools."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_data.json_objects import BadLine, read_objects
from trellis_recipes.data.row_values import BadRow, Cell, messages_in
from trellis_recipes.data.tool_calls import without_gaps

from trellis_train.agents.tooluse.data.simulator import Toolbox, find_tool_fault
from trellis_train.agents.tooluse.scoring.truth import BadTruth, GroundTruth

Message = dict[str, str]


class BadTask(ValueError):
    """A row cannot be used; the message names it and says why."""


@dataclass(frozen=True)
class Task:
    """One request."""

    id: str
    prompt: list[Message]
    truth: GroundTruth
    #: The offered tools: rows of ours, which can be simulated, or functions of OpenAI's form without their
    #: envelope; None where the row has none.
    tools: list[dict[str, Any]] | None = None

    @property
    def toolbox(self) -> Toolbox:
        """The tools, ready to be called where they can be simulated; ``BadTask`` where nobody knows them."""
        if self.tools is not None:
            return Toolbox(self.tools)
        if self.truth.available_tools is None:
            raise BadTask(f"{self.id}: neither extra_info.tools nor available_tools lists the tools")
        return Toolbox({"name": name} for name in self.truth.available_tools)


def read_task(row: Mapping[str, Any], place: str) -> Task:
    """Read a row in verl's format (``verl-rl``). ``BadTask`` names ``place``."""
    prompt = row.get("prompt")
    if not isinstance(prompt, list) or not prompt:
        raise BadTask(f"{place}: 'prompt' is not a list of messages")
    try:
        read = messages_in(Cell("prompt", prompt))
    except BadRow as error:
        raise BadTask(f"{place}: {error}") from error
    messages = [{"role": each["role"], "content": each["content"]} for each in read]
    model = row.get("reward_model")
    text = model.get("ground_truth") if isinstance(model, Mapping) else None
    if not isinstance(text, str):
        raise BadTask(f"{place}: reward_model.ground_truth is missing")
    try:
        truth = GroundTruth.parse(text)
    except BadTruth as error:
        raise BadTask(f"{place}: {error}") from error
    info = row.get("extra_info")
    info = info if isinstance(info, Mapping) else {}
    name = str(info.get("id") or info.get("index") or place)
    return Task(name, messages, truth, read_tools(info.get("tools") or row.get("tools"), place))


def load_tasks(path: Path, limit: int | None = None) -> list[Task]:
    """Load the first ``limit`` rows of a JSON Lines or Parquet file. Raises ``BadTask``."""
    tasks = []
    for number, row in enumerate(_read_rows(path), start=1):
        if limit is not None and number > limit:
            break
        tasks.append(read_task(row, f"row {number} of {path.name}"))
    if not tasks:
        raise BadTask(f"{path.name} is empty")
    return tasks


def _read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        if path.suffix == ".parquet":
            yield from pq.read_table(path).to_pylist()
        else:
            yield from read_objects(path)
    except (OSError, BadLine, pa.ArrowException) as error:
        raise BadTask(f"{path} cannot be read: {error}") from error


def read_tools(text: object, place: str) -> list[dict[str, Any]] | None:
    """Read the tools that a row offers, without envelopes; None if it has none. Raises ``BadTask``."""
    if text is None:
        return None
    try:
        tools = json.loads(text) if isinstance(text, str) else without_gaps(text)
    except (ValueError, RecursionError) as error:
        raise BadTask(f"{place}: extra_info.tools is not valid JSON: {error}") from error
    if not isinstance(tools, list):
        raise BadTask(f"{place}: extra_info.tools is not a list of tools")
    found = [tool.get("function", tool) if isinstance(tool, dict) else tool for tool in tools]
    if not all(isinstance(tool, dict) and isinstance(tool.get("name"), str) for tool in found):
        raise BadTask(f"{place}: extra_info.tools is not a list of tools: each needs a name")
    for tool in found:
        if "returns" in tool and (fault := find_tool_fault(tool)):
            raise BadTask(f"{place}: the tool {tool['name'][:80]!r} cannot be simulated: {fault}")
    return found
