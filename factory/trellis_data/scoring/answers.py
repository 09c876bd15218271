"""Which texts of a row are the answer that is scored, and what it answers."""

from typing import NamedTuple

import polars as pl
import pyarrow as pa

from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem
from trellis_data.row_texts import ANSWER_ROLES, is_conversation, is_text, row_texts


class Asked(NamedTuple):
    """One text a row of each; empty where there is none."""

    prompts: pl.Series
    answers: pl.Series


def answer_columns(schema: pa.Schema, layout: Layout) -> list[str]:
    """Return the columns with answers (the chosen one of a pair). Raise ``OperatorProblem`` if none."""
    if not layout.columns:
        found = [field.name for field in schema if is_conversation(field.type)]
    else:
        found = [
            column
            for role, column in layout.columns.items()
            if column in schema.names and _is_answer(role, schema.field(column).type)
        ]
    if not found:
        raise OperatorProblem(
            "no_answer", f"Rows of the format '{layout.format}' hold no answer that could be scored."
        )
    return found


def asked(batch: Batch) -> Asked:
    """Return the prompt and the answer of each row."""
    columns = answer_columns(batch.table.schema, batch.layout)
    return Asked(row_texts(batch, "prompt"), row_texts(batch, "answer", columns))


def _is_answer(role: str, kind: pa.DataType) -> bool:
    if role in ("rejected", "prompt"):
        return False
    return is_conversation(kind) or (role in ANSWER_ROLES and is_text(kind))
