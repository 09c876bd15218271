"""Conversations as tokens, with the assistant's own turns as labels.

The chat template writes the whole conversation once, as a sampler will see it. What it has written before
and after each turn of the assistant tells where that turn stands; a token is learned where it lies in one.
Templates that join neighbouring messages (Qwen's do with results of tools) come out right, and one that
rewrites earlier turns is refused.
"""

from collections.abc import Sequence
from typing import Any

from trellis_recipes.data.row_values import WEIGHT

Message = dict[str, Any]
#: A label that the loss leaves out.
UNLEARNED = -100


class TemplateRewrites(ValueError):
    """The chat template writes a turn otherwise once another follows, so no turn has a place of its own."""


class NothingToLearn(ValueError):
    """No token of a conversation is the assistant's."""


def encode_conversation(tokenizer: Any, messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """Return tokens and as many labels: a label is its token in assistant turns, else ``UNLEARNED``.

    A turn is all that follows the prompt for it: its text, its calls and the mark of its end. Raises
    ``TemplateRewrites`` and ``NothingToLearn``.
    """
    tokens, labels, _ = _encode(tokenizer, messages)
    if all(label == UNLEARNED for label in labels):
        raise NothingToLearn("the conversation has no assistant tokens to train on")
    return tokens, labels


def split_conversation(tokenizer: Any, messages: Sequence[Message]) -> list[tuple[list[int], list[int]]]:
    """Split the result of ``encode_conversation`` by message; a turn of weight 0 has no labels.

    A message that the template does not end a conversation with counts to the next. Raises
    ``TemplateRewrites``.
    """
    tokens, labels, begins = _encode(tokenizer, messages)
    ends = _end_messages(tokenizer, messages)
    parts: list[tuple[list[int], list[int]]] = [([], []) for _ in messages]
    for token, label, begin in zip(tokens, labels, begins, strict=True):
        part = next((number for number, end in enumerate(ends) if begin < end), len(ends) - 1)
        parts[part][0].append(token)
        parts[part][1].append(label)
    return parts


def _encode(tokenizer: Any, messages: Sequence[Message]) -> tuple[list[int], list[int], list[int]]:
    """Return tokens, labels, and where in the text each token begins."""
    whole = _render(tokenizer, messages)
    spans = [_locate(tokenizer, messages, n, whole) for n, each in enumerate(messages) if _is_learned(each)]
    encoded = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    tokens: list[int] = encoded["input_ids"]
    offsets = encoded["offset_mapping"]
    labels = [
        token if any(start <= left < right <= end for start, end in spans) else UNLEARNED
        for token, (left, right) in zip(tokens, offsets, strict=True)
    ]
    return tokens, labels, [left for left, _ in offsets]


def _end_messages(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Find where in the text each message ends."""
    from jinja2 import TemplateError

    whole = _render(tokenizer, messages)
    ends: list[int] = []
    for number in range(1, len(messages)):
        try:
            text = _render(tokenizer, messages[:number])
        except TemplateError:
            text = ""
        ends.append(len(text) if whole.startswith(text) and text else (ends[-1] if ends else 0))
    return [*ends, len(whole)]


def encode_rows(rows: Any, tokenizer: Any) -> Any:
    """Encode rows with ``messages`` to a dataset with the columns ``input_ids`` and ``labels``.

    Raises what ``encode_conversation`` and the template raise, with the number of the row.
    """
    from jinja2 import TemplateError

    if not tokenizer.is_fast:
        raise TypeError("The model has no fast tokenizer, which is needed to mask the prompt.")

    def encode(row: dict[str, Any], number: int) -> dict[str, list[int]]:
        try:
            tokens, labels = encode_conversation(tokenizer, row["messages"])
        except (TemplateError, TemplateRewrites, NothingToLearn) as error:
            raise type(error)(f"Row {number + 1} of the prepared data: {error}.") from error
        return {"input_ids": tokens, "labels": labels}

    return rows.map(encode, with_indices=True, remove_columns=rows.column_names, desc="Encoding")


def _is_learned(message: Message) -> bool:
    return bool(message["role"] == "assistant" and message.get(WEIGHT) != 0)


def _render(tokenizer: Any, messages: Sequence[Message], *, is_prompt: bool = False) -> str:
    plain = [{key: value for key, value in each.items() if key != WEIGHT} for each in messages]
    text: str = tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=is_prompt)
    return text


def _locate(tokenizer: Any, messages: Sequence[Message], number: int, whole: str) -> tuple[int, int]:
    """Locate the turn in the text: from the end of its prompt to its own end."""
    after = _render(tokenizer, messages[: number + 1])
    if number:
        before = _render(tokenizer, messages[:number], is_prompt=True)
    else:  # no template can be asked for the prompt of a conversation without messages
        before = after[: after.find(str(messages[0]["content"]))]
    if not (after.startswith(before) and whole.startswith(after)):
        raise TemplateRewrites(
            f"the model's chat template rewrites message {number + 1} (assistant) in longer conversations, "
            "so its tokens cannot be located; use a model whose template keeps earlier turns unchanged, or "
            "rows that end with that turn"
        )
    return len(before), len(after)
