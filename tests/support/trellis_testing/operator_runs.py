"""Rows as batches, and operators run on them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from trellis_contracts.recipe import DataFormat
from trellis_data.catalogue import find_operator
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, RowOperator
from trellis_data.outcome import Outcome

Turns = list[tuple[str, str]]


def documents(*texts: str) -> Batch:
    """Build a batch of plain texts."""
    return Batch(pa.table({"text": list(texts)}), Layout(DataFormat.TEXT, {"text": "text"}))


def answers(*pairs: tuple[str, str]) -> Batch:
    """Build a batch of questions with their answers."""
    table = pa.table({"question": [one for one, _ in pairs], "answer": [other for _, other in pairs]})
    return Batch(table, Layout(DataFormat.PROMPT_ANSWER, {"prompt": "question", "answer": "answer"}))


def chats(*rows: Turns) -> Batch:
    """Build a batch of conversations."""
    kind = pa.list_(pa.struct({"role": pa.string(), "content": pa.string()}))
    values = [[{"role": role, "content": text} for role, text in row] for row in rows]
    return Batch(
        pa.table({"messages": pa.array(values, kind)}), Layout(DataFormat.MESSAGES, {"messages": "messages"})
    )


def operator(
    name: str, *, tokenizer: Path | None = None, resources: dict[str, Path] | None = None, **params: Any
) -> RowOperator:
    """Create the operator with these parameters."""
    kind = find_operator(name)
    made = kind(kind.Params.model_validate(params), Context(tokenizer=tokenizer, resources=resources or {}))
    assert isinstance(made, RowOperator)
    return made


def run(name: str, batch: Batch, **options: Any) -> Outcome:
    """Run an operator on the batch and check that the parts of the outcome fit together."""
    made = operator(name, **options)
    made.check(batch.table.schema, batch.layout)
    outcome = made.apply(batch)
    assert outcome.table.num_rows == int(outcome.keep.sum())
    assert set(outcome.reasons) == {index for index, kept in enumerate(outcome.keep) if not kept}
    assert not (outcome.changed & ~outcome.keep).any()
    assert outcome.table.schema == made.schema_after(batch.table.schema)
    return outcome


def cleaned(name: str, *texts: str, **options: Any) -> list[str]:
    """Return the plain texts that are left after a step."""
    texts_after: list[str] = run(name, documents(*texts), **options).table["text"].to_pylist()
    return texts_after
