"""What a dataset's rows may look like, and into which forms they can be brought.

Intake, the check before a launch and the training side all read these tables: a format that the
one recognises is a format that the other can convert.
"""

from enum import StrEnum
from typing import NamedTuple

from trellis_contracts.recipe import DataFormat

#: Column names in the order in which they are looked for.
PROMPT_COLUMNS = ("prompt", "question", "instruction", "problem", "input")
ANSWER_COLUMNS = ("answer", "response", "output", "solution", "completion")
COMPLETION_COLUMNS = ("completion", "response", "output", "answer")
#: Who may speak in a conversation.
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class ColumnKind(StrEnum):
    """What a column's values are, as far as a role asks."""

    TEXT = "text"
    MESSAGES = "messages"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    OTHER = "other"


class DataRole(NamedTuple):
    """A part that a column plays in a format."""

    name: str
    #: Names under which the column is looked for where nobody says which one it is.
    usual_columns: tuple[str, ...]
    kinds: frozenset[ColumnKind]
    is_optional: bool = False


_TEXT = frozenset({ColumnKind.TEXT})
_MESSAGES = frozenset({ColumnKind.MESSAGES})
_EITHER = _TEXT | _MESSAGES
_PROMPT = DataRole("prompt", PROMPT_COLUMNS, _EITHER)
#: Text that comes before a prompt which is text; a prompt in messages has its own.
_SYSTEM = DataRole("system", ("system",), _TEXT, is_optional=True)

#: The roles of each format; their names are those of ``DataSource.columns``.
FORMAT_ROLES: dict[DataFormat, tuple[DataRole, ...]] = {
    DataFormat.PROMPT_ANSWER: (
        _PROMPT,
        DataRole("answer", ANSWER_COLUMNS, frozenset({ColumnKind.TEXT, ColumnKind.NUMBER})),
        #: Alpaca's second half of an ``instruction``; under its usual name it counts beside that one only.
        DataRole("input", ("input",), _TEXT, is_optional=True),
        _SYSTEM,
    ),
    DataFormat.MESSAGES: (DataRole("messages", ("messages",), _MESSAGES),),
    DataFormat.PREFERENCE: (
        DataRole("chosen", ("chosen",), _EITHER),
        DataRole("rejected", ("rejected",), _EITHER),
        #: Needed where both are texts; whole conversations have it in common.
        DataRole("prompt", PROMPT_COLUMNS, _EITHER, is_optional=True),
        _SYSTEM,
    ),
    DataFormat.UNPAIRED_PREFERENCE: (
        _PROMPT,
        DataRole("completion", COMPLETION_COLUMNS, _EITHER),
        DataRole("label", ("label",), frozenset({ColumnKind.BOOLEAN, ColumnKind.NUMBER, ColumnKind.TEXT})),
        _SYSTEM,
    ),
    DataFormat.TEXT: (DataRole("text", ("text",), _TEXT),),
    DataFormat.VERL_RL: (
        DataRole("data_source", ("data_source",), _TEXT),
        DataRole("prompt", ("prompt",), _MESSAGES),
        DataRole("reward_model", ("reward_model",), frozenset({ColumnKind.OBJECT})),
    ),
    DataFormat.UNKNOWN: (),
}

#: The formats that can be brought into each form that a trainer reads.
CONVERSIONS: dict[DataFormat, tuple[DataFormat, ...]] = {
    DataFormat.MESSAGES: (DataFormat.MESSAGES, DataFormat.PROMPT_ANSWER, DataFormat.PREFERENCE),
    DataFormat.VERL_RL: (DataFormat.VERL_RL, DataFormat.PROMPT_ANSWER, DataFormat.MESSAGES),
    DataFormat.TEXT: (DataFormat.TEXT,),
    DataFormat.PREFERENCE: (DataFormat.PREFERENCE,),
    #: A pair becomes two rows, the chosen one first.
    DataFormat.UNPAIRED_PREFERENCE: (DataFormat.UNPAIRED_PREFERENCE, DataFormat.PREFERENCE),
}


def role_of(data_format: DataFormat, name: str) -> DataRole | None:
    """Return the role of that name in a format, or None."""
    return next((role for role in FORMAT_ROLES[data_format] if role.name == name), None)
