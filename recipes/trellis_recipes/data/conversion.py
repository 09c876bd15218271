"""Brings rows of one format into the form that a trainer reads: the only place where that is done."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from trellis_contracts.recipe import DataFormat
from trellis_contracts.row_formats import CONVERSIONS

from trellis_recipes.data.reference_answers import find_reference_answer
from trellis_recipes.data.row_values import BadRow, Message, Row, RowReader, messages_in

#: Of rows whose dataset does not name its source; metric names hold it.
DATA_SOURCE = "dataset"


@dataclass(frozen=True)
class Place:
    """Where in its dataset a row stands."""

    index: int
    split: str


#: Gives the rows that a row becomes (never none), or raises ``BadRow`` and nothing else.
Convert = Callable[[Row, Place], list[dict[str, Any]]]


class NoConversion(ValueError):
    """No way leads from the one format to the other."""


def choose_conversion(source: DataFormat, form: DataFormat, columns: Mapping[str, str]) -> Convert:
    """Return the function that converts a row from format ``source`` to ``form``; raises ``NoConversion``."""
    if source not in CONVERSIONS.get(form, ()):
        raise NoConversion(f"Rows in '{source}' format can't be converted to '{form}'.")
    return partial(_CONVERTERS[form, source], RowReader(source, columns))


def rename(row: Row, columns: Mapping[str, str]) -> dict[str, Any]:
    """Rename columns that have a role to the role's name; drop other columns that have such a name."""
    roles = {column: role for role, column in columns.items()}
    kept = {name: value for name, value in row.items() if name in roles or name not in columns}
    return {roles.get(name, name): value for name, value in kept.items()}


def _messages(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    return [{"messages": reader.conversation(row)}]


def _question_as_messages(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    answer = {"role": "assistant", "content": reader.answer(row)}
    return [{"messages": [*reader.prompt(row), answer]}]


def _chosen_as_messages(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    prompt, chosen, _rejected = reader.pair(row)
    return [{"messages": [*prompt, *chosen]}]


def _question_as_rl(reader: RowReader, row: Row, place: Place) -> list[dict[str, Any]]:
    truth = find_reference_answer(reader.answer(row))
    return [_rl_row(reader.prompt(row), truth, place)]


def _messages_as_rl(reader: RowReader, row: Row, place: Place) -> list[dict[str, Any]]:
    """Convert a conversation to an RL row: the last assistant turn has the answer, the rest the prompt."""
    messages = reader.conversation(row)
    last = max(number for number, message in enumerate(messages) if message["role"] == "assistant")
    if last == 0:
        column = reader.require(row, "messages").column
        raise BadRow(f"'{column}' starts with the assistant, so there is no prompt")
    return [_rl_row(messages[:last], find_reference_answer(messages[last]["content"]), place)]


def _rl_as_it_is(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    """Keep all that verl's own rows hold; columns under other names get verl's names."""
    messages_in(reader.require(row, "prompt"))
    source = reader.require(row, "data_source")
    if not isinstance(source.value, str):
        raise BadRow(f"'{source.column}' must be text")
    reward_model = reader.require(row, "reward_model")
    if not isinstance(reward_model.value, Mapping) or reward_model.value.get("ground_truth") is None:
        raise BadRow(f"'{reward_model.column}' must contain 'ground_truth'")
    return [rename(row, reader.columns)]


def _rl_row(prompt: list[Message], truth: str, place: Place) -> dict[str, Any]:
    return {
        "data_source": DATA_SOURCE,
        "prompt": prompt,
        "ability": "general",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"index": place.index, "split": place.split, "question": prompt[-1]["content"]},
    }


def _text(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    return [{"text": reader.text(row)}]


def _pair(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    prompt, chosen, rejected = reader.pair(row)
    return [{"prompt": prompt, "chosen": chosen, "rejected": rejected}]


def _unpaired(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    prompt = reader.prompt(row)
    completion = reader.completion(row, "completion", prompt)
    return [{"prompt": prompt, "completion": completion, "label": reader.label(row)}]


def _pair_as_unpaired(reader: RowReader, row: Row, _: Place) -> list[dict[str, Any]]:
    prompt, chosen, rejected = reader.pair(row)
    return [
        {"prompt": prompt, "completion": chosen, "label": True},
        {"prompt": prompt, "completion": rejected, "label": False},
    ]


#: By form and source format; agrees with ``CONVERSIONS``.
_CONVERTERS: dict[tuple[DataFormat, DataFormat], Callable[[RowReader, Row, Place], list[dict[str, Any]]]] = {
    (DataFormat.MESSAGES, DataFormat.MESSAGES): _messages,
    (DataFormat.MESSAGES, DataFormat.PROMPT_ANSWER): _question_as_messages,
    (DataFormat.MESSAGES, DataFormat.PREFERENCE): _chosen_as_messages,
    (DataFormat.VERL_RL, DataFormat.VERL_RL): _rl_as_it_is,
    (DataFormat.VERL_RL, DataFormat.PROMPT_ANSWER): _question_as_rl,
    (DataFormat.VERL_RL, DataFormat.MESSAGES): _messages_as_rl,
    (DataFormat.TEXT, DataFormat.TEXT): _text,
    (DataFormat.PREFERENCE, DataFormat.PREFERENCE): _pair,
    (DataFormat.UNPAIRED_PREFERENCE, DataFormat.UNPAIRED_PREFERENCE): _unpaired,
    (DataFormat.UNPAIRED_PREFERENCE, DataFormat.PREFERENCE): _pair_as_unpaired,
}
