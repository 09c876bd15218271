"""Prompts and references from the rows of a dataset, by columns or by a template."""

import re
from collections.abc import Mapping
from typing import Any

from trellis_contracts.evaluation import CustomOrder
from trellis_contracts.recipe import DataFormat
from trellis_recipes.data.row_values import BadRow, RowReader, messages_in

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Message
from trellis_train.evaluate.loading import Row

#: ``{{`` and ``}}`` stand for braces, as in Python's own templates.
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")
_NAME = re.compile(r"\w+")


def read_prompt(row: Row, order: CustomOrder, data_format: DataFormat | None) -> list[Message]:
    """Return the conversation before the answer; ``BenchmarkUnusable`` if the row has none."""
    if order.template is not None:
        return [{"role": "user", "content": fill(order.template, row)}]
    reader = _reader(order, data_format)
    try:
        if data_format is DataFormat.MESSAGES and "prompt" not in order.columns:
            return _before_answer(reader, row)[0]
        return reader.prompt(row.values)
    except BadRow as error:
        raise BenchmarkUnusable(f"{row.place}: {error}") from error


def read_answer(row: Row, order: CustomOrder, data_format: DataFormat | None) -> str | None:
    """Return the reference or None; ``BenchmarkUnusable`` if it is neither text nor number."""
    reader = _reader(order, data_format)
    cell = reader.find(row.values, "answer")
    if cell is not None and isinstance(cell.value, str) and not cell.value.strip():
        return None
    try:
        if not reader.is_named("answer"):
            if data_format is DataFormat.MESSAGES:
                return _before_answer(reader, row)[1]
            if data_format is DataFormat.VERL_RL:
                return _ground_truth(row)
        return None if cell is None else reader.answer(row.values)
    except BadRow as error:
        raise BenchmarkUnusable(f"{row.place}: {error}") from error


def fill(template: str, row: Row, shown: Mapping[str, str] | None = None) -> str:
    """Fill the template with the row's values; text as it is, other values JSON-like.

    ``shown`` replaces the values of some columns. A name that is no column is an error, but braces around
    what is no name (``\\frac{1}{2}``) stay.
    """
    values: dict[str, Any] = {**row.values, **(shown or {})}

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()[0]
        if name in values:
            value = values[name]
            return "" if value is None else value if isinstance(value, str) else str(value)
        if _NAME.fullmatch(name) and not name.isdecimal():
            columns = ", ".join(values)
            raise BenchmarkUnusable(
                f"the template uses '{name}', but {row.place} only has the columns {columns}"
            )
        return match.group()

    return _FIELD.sub(replace, template)


def _reader(order: CustomOrder, data_format: DataFormat | None) -> RowReader:
    """Return the row reader; formats without prompt or answer use the usual column names."""
    kept = data_format in (DataFormat.MESSAGES, DataFormat.VERL_RL)
    known = data_format if data_format is not None and kept else DataFormat.PROMPT_ANSWER
    return RowReader(known, {str(role): name for role, name in order.columns.items()})


def _before_answer(reader: RowReader, row: Row) -> tuple[list[Message], str | None]:
    """Split before the last assistant turn and return both parts; (all messages, None) without one."""
    messages = messages_in(reader.require(row.values, "messages"))
    turns = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
    if not turns:
        return messages, None
    last = turns[-1]
    if last == 0:
        raise BadRow("the conversation starts with an assistant message, so there is no prompt")
    return messages[:last], messages[last]["content"]


def _ground_truth(row: Row) -> str | None:
    reward_model = row.values.get("reward_model")
    truth = reward_model.get("ground_truth") if isinstance(reward_model, Mapping) else None
    return None if truth is None else str(truth)
