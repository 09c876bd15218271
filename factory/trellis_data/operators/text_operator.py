"""What operators on texts share: their check, acting on the lines that need it, making an outcome of it."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa

from trellis_data.findings import Finding
from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem, RowOperator, TextParams
from trellis_data.outcome import Outcome, dropping
from trellis_data.row_texts import any_in_row, is_conversation, is_text, texts_of, with_texts

#: A fenced block up to its end or the text's, and code within a line.
_CODE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`)", re.DOTALL)
#: The same as a Rust expression.
CODE = r"(?s)```.*?(?:```|\z)|~~~.*?(?:~~~|\z)|`[^`\n]+`"


class TextOperator(RowOperator):
    """An operator on the texts that its parameters name."""

    params: TextParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that the columns exist and contain texts."""
        named = self.params.columns
        for name in named if named is not None else []:
            if name not in schema.names:
                raise OperatorProblem(
                    "column_missing", f"There is no column '{name}'; there are {', '.join(schema.names)}."
                )
        names = named if named is not None else [*layout.columns.values()] or schema.names
        kinds = [schema.field(name).type for name in names if name in schema.names]
        if not any(is_text(kind) or is_conversation(kind) for kind in kinds):
            raise OperatorProblem(
                "no_text", f"None of the columns {', '.join(names)} holds texts or messages; name others."
            )

    def texts(self, batch: Batch) -> pl.DataFrame:
        """Return the lines of text that the parameters select."""
        return texts_of(batch, self.params.where, self.params.columns)


def rewritten(
    batch: Batch,
    frame: pl.DataFrame,
    new: pl.Series,
    *,
    drop: Mapping[str, np.ndarray] | None = None,
    counts: Counter[str] | None = None,
    findings: dict[str, Finding] | None = None,
) -> Outcome:
    """Return the rows with new texts in place of the frame's, without those that ``drop`` hits."""
    differs = new != frame["text"]
    changed = any_in_row(batch, frame, differs)
    table = batch.table
    if changed.any():
        table = with_texts(batch, frame.filter(differs), new.filter(differs))
    outcome = dropping(table, dict(drop or {}))
    return replace(
        outcome,
        changed=changed & outcome.keep,
        counts=counts if counts is not None else Counter(),
        findings=findings or {},
    )


def replace_lines(texts: pl.Series, at: pl.Series, work: Callable[[str], str]) -> pl.Series:
    """Replace the lines where ``at`` is true by the result of ``work``, for what expressions cannot do."""
    where = np.flatnonzero(at.to_numpy())
    return put(texts, where, pl.Series([work(text) for text in texts.gather(where)], dtype=pl.String))


def put(texts: pl.Series, at: np.ndarray, new: pl.Series) -> pl.Series:
    """Return a copy of ``texts`` with ``new`` at the places ``at`` (``scatter`` changes the original)."""
    if len(at) == 0:
        return texts
    picks = np.arange(len(texts))
    picks[at] = len(texts) + np.arange(len(at))
    return pl.concat([texts, new], rechunk=True).gather(picks)


def outside_code(text: str, work: Callable[[str], str]) -> str:
    """Apply ``work`` to what is not code; fenced blocks and inline code stay as they are.

    >>> outside_code("a  b `a  b`", lambda part: part.replace("  ", " "))
    'a b `a  b`'
    """
    parts = _CODE.split(text)
    return "".join(part if index % 2 else work(part) for index, part in enumerate(parts))


def outside_code_of_all(texts: pl.Series, work: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Apply ``work`` to all texts, but not to their code (see ``outside_code``)."""
    new = work(texts)
    with_code = np.flatnonzero(texts.str.contains_any(["`", "~~~"]).to_numpy())
    if len(with_code) == 0:
        return new
    split = [_CODE.split(text) for text in texts.gather(with_code)]
    plain = iter(work(pl.Series([part for parts in split for part in parts[::2]], dtype=pl.String)))
    joined = [
        "".join(part if index % 2 else next(plain) for index, part in enumerate(parts)) for parts in split
    ]
    return put(new, with_code, pl.Series(joined, dtype=pl.String))


def over_rows(batch: Batch, frame: pl.DataFrame, values: pl.Series) -> np.ndarray:
    """Sum the lines' values for each row of the batch (float64); 0 for a row without lines."""
    return np.bincount(
        frame["row"].to_numpy(), weights=values.to_numpy().astype(np.float64), minlength=len(batch)
    )
