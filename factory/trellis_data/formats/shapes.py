"""The formats that rows are brought from and into, and the columns of each."""

from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa
from trellis_contracts.recipe import DataFormat

from trellis_data.layout import Layout


class Shape(StrEnum):
    """A format as files have it; several may mean the same to a trainer (``MEANS``)."""

    ALPACA = "alpaca"
    SHAREGPT = "sharegpt"
    MESSAGES = "messages"
    PROMPT_ANSWER = "prompt-answer"
    PREFERENCE = "preference"
    UNPAIRED_PREFERENCE = "unpaired-preference"
    VERL_RL = "verl-rl"
    VERL_SFT = "verl-sft"
    TEXT = "text"


#: What the platform calls rows of a shape. ShareGPT's turns have other names, so no trainer reads them.
MEANS: dict[Shape, DataFormat] = {
    Shape.ALPACA: DataFormat.PROMPT_ANSWER,
    Shape.SHAREGPT: DataFormat.UNKNOWN,
    Shape.MESSAGES: DataFormat.MESSAGES,
    Shape.PROMPT_ANSWER: DataFormat.PROMPT_ANSWER,
    Shape.PREFERENCE: DataFormat.PREFERENCE,
    Shape.UNPAIRED_PREFERENCE: DataFormat.UNPAIRED_PREFERENCE,
    Shape.VERL_RL: DataFormat.VERL_RL,
    Shape.VERL_SFT: DataFormat.MESSAGES,
    Shape.TEXT: DataFormat.TEXT,
}

#: The columns that a conversion writes, by the role that they play afterwards.
_WRITTEN: dict[Shape, dict[str, str]] = {
    Shape.ALPACA: {"prompt": "instruction", "input": "input", "answer": "output", "system": "system"},
    Shape.SHAREGPT: {},
    Shape.MESSAGES: {"messages": "messages"},
    Shape.PROMPT_ANSWER: {"prompt": "prompt", "answer": "answer", "system": "system"},
    Shape.PREFERENCE: {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"},
    Shape.UNPAIRED_PREFERENCE: {"prompt": "prompt", "completion": "completion", "label": "label"},
    Shape.VERL_RL: {"data_source": "data_source", "prompt": "prompt", "reward_model": "reward_model"},
    Shape.VERL_SFT: {"messages": "messages"},
    Shape.TEXT: {"text": "text"},
}

PLAIN_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
_CALL = pa.struct(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())])),
    ]
)
#: What messages hold beside a role and a text.
MESSAGE_FIELDS = {"name": pa.string(), "tool_calls": pa.list_(_CALL), "tool_call_id": pa.string()}
WIDE_MESSAGE = pa.struct([*PLAIN_MESSAGE, *(pa.field(name, kind) for name, kind in MESSAGE_FIELDS.items())])
_TURN = pa.struct([("from", pa.string()), ("value", pa.string())])
#: Holds what the target has no place for, as JSON text.
EXTRA = "extra"


@dataclass(frozen=True)
class Reading:
    """A shape, and the columns that play its roles where not their usual names do."""

    shape: Shape
    columns: dict[str, str] = field(default_factory=dict)


def layout_of(shape: Shape) -> Layout:
    """Return what the columns mean after a conversion into ``shape``."""
    return Layout(MEANS[shape], dict(_WRITTEN[shape]))


def message_type(*, is_wide: bool) -> pa.DataType:
    """Return the type of a conversation, with or without fields for tools."""
    return pa.list_(WIDE_MESSAGE if is_wide else PLAIN_MESSAGE)


def written_schema(shape: Shape, *, is_wide: bool, has_solution: bool = False) -> pa.Schema:
    """Return the columns that a conversion into ``shape`` writes."""
    messages = message_type(is_wide=is_wide)
    text, extra = pa.string(), (EXTRA, pa.string())
    solution = [("solution", text)] if has_solution else []
    fields: dict[Shape, list[tuple[str, pa.DataType]]] = {
        Shape.ALPACA: [("instruction", text), ("input", text), ("output", text), ("system", text)],
        Shape.SHAREGPT: [("conversations", pa.list_(_TURN)), ("system", text), extra],
        Shape.MESSAGES: [("messages", messages)],
        Shape.PROMPT_ANSWER: [("prompt", text), ("answer", text), ("system", text), *solution],
        Shape.PREFERENCE: [("prompt", messages), ("chosen", messages), ("rejected", messages)],
        Shape.UNPAIRED_PREFERENCE: [("prompt", messages), ("completion", messages), ("label", pa.bool_())],
        Shape.VERL_RL: [
            ("data_source", text),
            ("prompt", messages),
            ("ability", text),
            ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", pa.struct([("question", text), ("answer", text)])),
            extra,
        ],
        Shape.VERL_SFT: [("messages", messages)],
        Shape.TEXT: [("text", text)],
    }
    return pa.schema(fields[shape])
