"""Conversations as tokens, with the assistant's own turns as labels.

The chat template writes the whole conversation once, as a sampler will see it. What it has written before
and after each turn of the assistant tells where that turn stands; a token is learned where it lies in one.
Templates that join neighbouring messages (Qwen's do with results of tools) come out right, and one that
rewrites earlier turns is refused.
"""

from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
#: A label that the loss leaves out.
UNLEARNED = -100


class TemplateRewrites(ValueError):
    """The chat template writes a turn otherwise once another follows, so no turn has a place of its own."""


class NothingToLearn(ValueError):
    """No token of a conversation is the assistant's."""


def encode_conversation(tokenizer: Any, messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """Tokens and labels, equally long: a label is its token in the assistant's turns, else ``UNLEARNED``.

    A turn is all that follows the prompt for it: its text, its calls and the mark of its end. Raises
    ``TemplateRewrites`` and ``NothingToLearn``.
    """
    whole = _render(tokenizer, messages)
    spans = [_locate(tokenizer, messages, n, whole) for n, each in enumerate(messages) if _is_learned(each)]
    encoded = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    tokens: list[int] = encoded["input_ids"]
    labels = [
        token if any(start <= left < right <= end for start, end in spans) else UNLEARNED
        for token, (left, right) in zip(tokens, encoded["offset_mapping"], strict=True)
    ]
    if all(label == UNLEARNED for label in labels):
        raise NothingToLearn("the conversation has no assistant tokens to train on")
    return tokens, labels


def encode_rows(rows: Any, tokenizer: Any) -> Any:
    """A dataset with the columns ``input_ids`` and ``labels`` of rows with ``messages``.

    Raises what ``encode_conversation`` raises, with the number of the row.
    """
    if not tokenizer.is_fast:
        raise TypeError("The model has no fast tokenizer, which is needed to mask the prompt.")

    def encode(row: dict[str, Any], number: int) -> dict[str, list[int]]:
        try:
            tokens, labels = encode_conversation(tokenizer, row["messages"])
        except (TemplateRewrites, NothingToLearn) as error:
            raise type(error)(f"Row {number + 1} of the prepared data: {error}.") from error
        return {"input_ids": tokens, "labels": labels}

    return rows.map(encode, with_indices=True, remove_columns=rows.column_names, desc="Encoding")


def _is_learned(message: Message) -> bool:
    return bool(message["role"] == "assistant")


def _render(tokenizer: Any, messages: Sequence[Message], *, is_prompt: bool = False) -> str:
    text: str = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=is_prompt)
    return text


def _locate(tokenizer: Any, messages: Sequence[Message], number: int, whole: str) -> tuple[int, int]:
    """Where the turn stands in the text: from the end of its prompt to its own end."""
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
