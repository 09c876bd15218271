"""Reads what the columns of a row hold: prompts, answers, conversations, labels.

Every function raises ``BadRow`` with a sentence that names the column and says what is wrong.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trellis_contracts.recipe import DataFormat
from trellis_contracts.row_formats import ROLES, role_of

from trellis_recipes.data.tool_calls import BadCalls, offer_tools, write_calls

Row = Mapping[str, Any]
#: Role and content; ``weight`` 0 where the assistant said what is not to be learned.
Message = dict[str, Any]
WEIGHT = "weight"
#: Beside a conversation: the functions that its assistant may call.
TOOLS_COLUMN = "tools"
_TRUE, _FALSE = ("true", "1"), ("false", "0")


class BadRow(ValueError):
    """A row cannot be converted; ``code`` says why in one word."""

    def __init__(self, message: str, code: str = "wrong_value") -> None:
        super().__init__(message)
        self.code = code


class Cell(NamedTuple):
    """A value, and the name of the column that it stands in."""

    column: str
    value: Any


class RowReader:
    """Finds the columns of one format: those that are named, else those with a usual name."""

    def __init__(
        self,
        data_format: DataFormat,
        columns: Mapping[str, str],
        read_messages: Callable[[Cell], list[Any]] | None = None,
    ) -> None:
        """Take ``read_messages`` to read a conversation; by default what trainers take: roles and texts."""
        self._format = data_format
        self.columns = columns
        self._reads_otherwise = read_messages is not None
        self._messages_in: Callable[[Cell], list[Any]] = read_messages or messages_in

    def is_named(self, role: str) -> bool:
        """Tell whether the caller said which column plays the role."""
        return role in self.columns

    def find(self, row: Row, role: str) -> Cell | None:
        """Return the cell with this role, or None if the row has none."""
        if role in self.columns:
            name = self.columns[role]
            return None if row.get(name) is None else Cell(name, row[name])
        known = role_of(self._format, role)
        for name in known.usual_columns if known else ():
            if row.get(name) is not None:
                return Cell(name, row[name])
        return None

    def require(self, row: Row, role: str) -> Cell:
        """Return the cell with this role. Raises ``BadRow`` if the row has none."""
        cell = self.find(row, role)
        if cell is not None:
            return cell
        if role in self.columns:
            raise BadRow(f"'{self.columns[role]}' is missing or null (it is the {role})", "missing")
        known = role_of(self._format, role)
        names = ", ".join(known.usual_columns) if known else role
        raise BadRow(f"has no {role} (a column named {names})", "missing")

    def prompt(self, row: Row) -> list[Message]:
        """Return the prompt as a list of messages."""
        cell = self.require(row, "prompt")
        if isinstance(cell.value, list):
            return self._messages_in(cell)
        text = text_in(cell)
        further = self.find(row, "input")
        if further is not None and (self.is_named("input") or cell.column == "instruction"):
            if not isinstance(further.value, str):
                raise BadRow(f"'{further.column}' must be text, not {type(further.value).__name__}")
            text = f"{text}\n\n{further.value}" if further.value.strip() else text
        return [*self._preamble(row), {"role": "user", "content": text}]

    def _preamble(self, row: Row) -> list[Message]:
        cell = self.find(row, "system")
        if cell is None or (isinstance(cell.value, str) and not cell.value.strip()):
            return []
        if not isinstance(cell.value, str):
            raise BadRow(f"'{cell.column}' must be text, not {type(cell.value).__name__}")
        return [{"role": "system", "content": cell.value}]

    def answer(self, row: Row) -> str:
        """Return the answer as text; finite numbers are accepted because files often store them as such."""
        cell = self.require(row, "answer")
        if isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
            if not math.isfinite(cell.value):
                raise BadRow(f"'{cell.column}' is not a finite number")
            return str(cell.value)
        return text_in(cell)

    def conversation(self, row: Row) -> list[Message]:
        """Return the conversation of a row; it must contain an assistant turn to train on."""
        cell = self.require(row, "messages")
        messages = self._messages_in(cell)
        if not any(message["role"] == "assistant" for message in messages):
            raise BadRow(f"'{cell.column}' has no assistant turn", "no_answer")
        if not any(message["role"] == "assistant" and message.get(WEIGHT) != 0 for message in messages):
            raise BadRow(f"'{cell.column}' has no turn to train on: all have weight 0", "no_answer")
        return self._with_tools(row, messages)

    def _with_tools(self, row: Row, messages: list[Message]) -> list[Message]:
        """Add the tools of a row (column ``tools``) to the conversation if it does not describe them yet."""
        if self._reads_otherwise or not row.get(TOOLS_COLUMN):
            return messages
        try:
            return offer_tools(messages, row[TOOLS_COLUMN])
        except BadCalls as error:
            raise BadRow(f"'{TOOLS_COLUMN}': {error}", "bad_tools") from error

    def text(self, row: Row) -> str:
        """Return the text of a document row."""
        return text_in(self.require(row, "text"))

    def label(self, row: Row) -> bool:
        """Tell whether a completion is wanted."""
        cell = self.require(row, "label")
        value = cell.value
        if isinstance(value, bool):
            return value
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        if isinstance(value, str) and value.strip().lower() in _TRUE + _FALSE:
            return value.strip().lower() in _TRUE
        shown = repr(value)[:40]
        raise BadRow(f"'{cell.column}' must be true or false (or 1 or 0), not {shown}")

    def completion(self, row: Row, role: str, prompt: list[Message]) -> list[Message]:
        """Return the messages that answer the prompt; a cell with messages may repeat the prompt first."""
        cell = self.require(row, role)
        if not isinstance(cell.value, list):
            return [{"role": "assistant", "content": text_in(cell)}]
        messages = self._messages_in(cell)
        if messages[: len(prompt)] == prompt:
            messages = messages[len(prompt) :]
        if not messages:
            raise BadRow(f"'{cell.column}' has nothing after the prompt", "no_answer")
        if messages[0]["role"] != "assistant":
            raise BadRow(f"'{cell.column}' goes on with the role {messages[0]['role']!r} after the prompt")
        return messages

    def pair(self, row: Row) -> tuple[list[Message], list[Message], list[Message]]:
        """Return prompt, chosen and rejected; without a prompt, both sides' common start is the prompt."""
        if self.is_named("prompt") or self.find(row, "prompt") is not None:
            prompt = self.prompt(row)
            return prompt, self.completion(row, "chosen", prompt), self.completion(row, "rejected", prompt)
        sides = [self.require(row, role) for role in ("chosen", "rejected")]
        for cell in sides:
            if isinstance(cell.value, str):
                raise BadRow(f"'{cell.column}' is text, so that a column must be the prompt")
        chosen, rejected = (self._messages_in(cell) for cell in sides)
        shared = 0
        while shared < min(len(chosen), len(rejected)) - 1 and chosen[shared] == rejected[shared]:
            shared += 1
        prompt = chosen[:shared]
        if not prompt or prompt[-1]["role"] == "assistant":
            raise BadRow(f"'{sides[0].column}' and '{sides[1].column}' do not answer the same prompt")
        return prompt, self.completion(row, "chosen", prompt), self.completion(row, "rejected", prompt)


def text_in(cell: Cell) -> str:
    """Return the cell's text. Raises ``BadRow`` if it is not text or is blank."""
    if not isinstance(cell.value, str):
        raise BadRow(f"'{cell.column}' must be text, not {type(cell.value).__name__}")
    if not cell.value.strip():
        raise BadRow(f"'{cell.column}' is empty", "empty")
    return cell.value


def messages_in(cell: Cell) -> list[Message]:
    """Return the cell's conversation as a list of checked messages."""
    if not isinstance(cell.value, list) or not cell.value:
        raise BadRow(f"'{cell.column}' must be a list of messages")
    messages = []
    for number, message in enumerate(cell.value, start=1):
        if not isinstance(message, Mapping):
            raise BadRow(f"message {number} of '{cell.column}' is not an object with role and content")
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or role not in ROLES:
            raise BadRow(f"message {number} of '{cell.column}' has the role {role!r}", "unknown_role")
        calls = message.get("tool_calls")
        if calls and role == "assistant":
            try:
                content = write_calls(content if isinstance(content, str) else "", calls)
            except BadCalls as error:
                raise BadRow(f"message {number} of '{cell.column}': {error}", "bad_tool_call") from error
        if not isinstance(content, str):
            raise BadRow(f"message {number} of '{cell.column}' has no text in 'content'", "no_text")
        place = f"message {number} of '{cell.column}'"
        messages.append({"role": role, "content": content, **_weight_in(message, place)})
    return messages


def _weight_in(message: Mapping[str, Any], place: str) -> dict[str, int]:
    """Return the weight of an assistant turn that is not trained on; empty for other turns (most rows)."""
    weight = message.get(WEIGHT)
    if weight is None or message["role"] != "assistant" or weight == 1:
        return {}
    if weight != 0:
        raise BadRow(f"{place} has the weight {weight!r}, which must be 0 or 1", "bad_weight")
    return {WEIGHT: 0}
