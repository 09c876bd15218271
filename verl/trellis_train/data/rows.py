"""Converts single rows: what a dataset holds, and what the engines want instead.

Every function raises ``BadRow`` with a sentence that says what is wrong.
"""

from collections.abc import Mapping
from typing import Any

from trellis_contracts.rows import ANSWER_COLUMNS, PROMPT_COLUMNS, ROLES

from trellis_train.rewards.answers import find_reference_answer

Row = Mapping[str, Any]
Message = dict[str, str]
#: Of rows whose dataset does not name its source; metric names hold it.
DATA_SOURCE = "dataset"


class BadRow(ValueError):
    """A row cannot be converted."""


def prompt_answer_to_messages(row: Row) -> list[Message]:
    """A question and its answer as a conversation."""
    return [*_prompt(row), {"role": "assistant", "content": _answer(row)}]


def messages_of(row: Row) -> list[Message]:
    """The conversation of a row; it must hold a turn of the assistant to learn from."""
    messages = _messages(row.get("messages"), "messages")
    if not any(message["role"] == "assistant" for message in messages):
        raise BadRow("'messages' has no turn of the assistant")
    return messages


def prompt_answer_to_rl(row: Row) -> tuple[list[Message], str]:
    """Prompt and reference answer."""
    return _prompt(row), find_reference_answer(_answer(row))


def messages_to_rl(row: Row) -> tuple[list[Message], str]:
    """The conversation before its last assistant turn, and the answer in that turn."""
    messages = messages_of(row)
    last = max(index for index, message in enumerate(messages) if message["role"] == "assistant")
    if last == 0:
        raise BadRow("'messages' begins with the assistant, so there is no prompt")
    return messages[:last], find_reference_answer(messages[last]["content"])


def check_verl_rl(row: Row) -> None:
    """A row that already is in verl's own form."""
    _messages(row.get("prompt"), "prompt")
    if not isinstance(row.get("data_source"), str):
        raise BadRow("'data_source' must be text")
    reward_model = row.get("reward_model")
    if not isinstance(reward_model, Mapping) or reward_model.get("ground_truth") is None:
        raise BadRow("'reward_model' must hold 'ground_truth'")


def rl_row(prompt: list[Message], truth: str, *, index: int, split: str) -> dict[str, Any]:
    """A row of verl's RL dataset."""
    return {
        "data_source": DATA_SOURCE,
        "prompt": prompt,
        "ability": "general",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"index": index, "split": split, "question": prompt[-1]["content"]},
    }


def _prompt(row: Row) -> list[Message]:
    name = _first_present(row, PROMPT_COLUMNS)
    value = row[name]
    if isinstance(value, list):
        return _messages(value, name)
    text = _text(value, name)
    if name == "instruction" and isinstance(row.get("input"), str) and row["input"].strip():
        text = f"{text}\n\n{row['input']}"
    system = row.get("system")
    preamble = [{"role": "system", "content": system}] if isinstance(system, str) and system.strip() else []
    return [*preamble, {"role": "user", "content": text}]


def _answer(row: Row) -> str:
    name = _first_present(row, ANSWER_COLUMNS)
    value = row[name]
    # Numbers are answers too, and CSV or JSON files often hold them as such.
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return _text(value, name)


def _first_present(row: Row, names: tuple[str, ...]) -> str:
    for name in names:
        if row.get(name) is not None:
            return name
    raise BadRow(f"has no {names[0]} (a column named {', '.join(names)})")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise BadRow(f"'{name}' must be text, not {type(value).__name__}")
    if not value.strip():
        raise BadRow(f"'{name}' is empty")
    return value


def _messages(value: object, name: str) -> list[Message]:
    if not isinstance(value, list) or not value:
        raise BadRow(f"'{name}' must be a list of messages")
    messages = []
    for number, message in enumerate(value, start=1):
        if not isinstance(message, Mapping):
            raise BadRow(f"message {number} of '{name}' is not an object with role and content")
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise BadRow(f"message {number} of '{name}' has the role {role!r}")
        if not isinstance(content, str):
            raise BadRow(f"message {number} of '{name}' has no text in 'content'")
        messages.append({"role": str(role), "content": content})
    return messages
