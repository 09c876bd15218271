"""Prompts of a benchmark: examples and question, as plain text or as a conversation."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from trellis_train.evaluate.benchmark import BenchmarkUnusable, Message
from trellis_train.evaluate.loading import Row


class Example(NamedTuple):
    """A solved problem."""

    question: str
    answer: str


def plain_prompt(examples: Sequence[Example], question: str, *, description: str = "") -> str:
    """Join the examples, separated by blank lines, and the question.

    The same characters as lm-evaluation-harness writes with its default delimiters.
    """
    solved = "".join(f"{example.question} {example.answer}\n\n" for example in examples)
    return f"{description}{solved}{question}"


def chat_prompt(
    examples: Sequence[Example], question: str, *, system: str | None, description: str = ""
) -> list[Message]:
    """Build a conversation in which each example is a user turn and an assistant turn."""
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    for example in examples:
        messages.append({"role": "user", "content": example.question})
        messages.append({"role": "assistant", "content": example.answer})
    messages.append({"role": "user", "content": question})
    if description:
        first = next(message for message in messages if message["role"] == "user")
        first["content"] = description + first["content"]
    return messages


def first_rows(rows: Sequence[Row], count: int, where: str) -> list[Row]:
    """Return the first ``count`` rows, so that all evaluations use the same examples."""
    if len(rows) < count:
        raise BenchmarkUnusable(f"{where} has only {len(rows)} examples, too few for {count} shots")
    return list(rows[:count])


def drawn_rows(rows: Sequence[Row], count: int, *, seed: int, name: str) -> list[Row]:
    """Draw ``count + 1`` rows by the seed, so that a row that is among them can be left out.

    All problems of a group have the same examples but those that are examples themselves, so that an
    engine computes a shared beginning once.
    """
    if len(rows) <= count:
        raise BenchmarkUnusable(f"{name} has only {len(rows)} problems, too few for {count} shots")
    return random.Random(f"{seed}/{name}").sample(list(rows), count + 1)  # noqa: S311 - examples


def without(rows: Sequence[Row], position: int, count: int) -> list[Row]:
    """Return ``count`` of the rows, never the one at ``position``."""
    return [row for row in rows if row.position != position][:count]
