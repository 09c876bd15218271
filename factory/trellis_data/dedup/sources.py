"""What all ways of finding duplicates scan alike: the text of a row, its rank in a cluster, a preview."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
from trellis_contracts.recipe import Text

from trellis_data.dedup.number_columns import ColumnWriter, Ragged
from trellis_data.layout import Batch
from trellis_data.operator import OperatorProblem, TextParams, parameter
from trellis_data.row_texts import row_texts

#: Characters of a text that are kept to look at.
PREVIEW_CHARACTERS = 400

Keep = Literal["first", "longest", "best"]


class DuplicateParams(TextParams):
    """Parameters that every way of finding duplicates has."""

    keep: Keep = parameter(
        "first",
        title=Text(en="Row to keep", zh="保留哪一行"),
        help=Text(
            en="Which row of a cluster to keep: the first, the longest, or the one with the highest score.",
            zh="每个重复簇中保留的行：最先出现的、最长的，或某个分数列中得分最高的。",
        ),
    )
    score_column: str | None = parameter(
        None,
        title=Text(en="Score column", zh="分数列"),
        help=Text(
            en="Numeric column used for ranking. Rows without a value rank last.",
            zh="用于判断哪一行最好的数值列；没有数值的行排在最后。",
        ),
    )


@dataclass(frozen=True)
class TextBuffers:
    """Texts as Arrow keeps them: UTF-8 in a row, and where each begins."""

    data: np.ndarray
    offsets: np.ndarray

    @staticmethod
    def of(texts: pl.Series) -> "TextBuffers":
        """Take the buffers of a series without nulls."""
        column = texts.to_arrow().cast(pa.large_string())
        _, offsets, data = column.buffers()
        size = len(column)
        if offsets is None or size == 0:
            return TextBuffers(np.empty(0, np.uint8), np.zeros(1, np.int64))
        every = np.frombuffer(offsets, np.int64)[column.offset : column.offset + size + 1]
        return TextBuffers(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), every)

    @property
    def lengths(self) -> np.ndarray:
        """Bytes of each text."""
        return np.diff(self.offsets)

    @property
    def values(self) -> np.ndarray:
        """The bytes of all texts, without what lies before the first."""
        return self.data[self.offsets[0] : self.offsets[-1]]


def check_score(schema: pa.Schema, params: DuplicateParams) -> None:
    """Raise ``OperatorProblem`` where the best row is wanted and nothing says which that is."""
    if params.keep != "best":
        return
    name = params.score_column
    if name is None:
        raise OperatorProblem("score_column_missing", "'keep: best' requires 'score_column'.")
    if name not in schema.names:
        raise OperatorProblem("column_missing", f"No column '{name}'; available: {', '.join(schema.names)}.")
    kind = schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise OperatorProblem("column_not_a_number", f"Column '{name}' holds {kind}; a number is needed.")


def scan_rows(writer: ColumnWriter, batch: Batch, params: DuplicateParams) -> pl.Series:
    """Write rank and preview of a batch's rows; their texts."""
    texts = row_texts(batch, params.where, params.columns)
    # What is cut off says so: two rows may differ only there.
    cut = pl.when(texts.str.len_chars() > PREVIEW_CHARACTERS).then(pl.lit("…")).otherwise(pl.lit(""))
    preview = TextBuffers.of(pl.select(texts.str.head(PREVIEW_CHARACTERS) + cut).to_series())
    Ragged.append(writer, "preview", preview.values, preview.lengths)
    if params.keep == "longest":
        writer.append("rank", texts.str.len_chars().to_numpy().astype(np.float64))
    elif params.keep == "best" and params.score_column is not None:
        scores = batch.table.column(params.score_column).cast(pa.float64(), safe=False).to_numpy()
        writer.append("rank", np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf))
    return texts


def previews(ragged: Ragged, rows: np.ndarray) -> list[str]:
    """Return the previews of some rows (ascending)."""
    data, starts = ragged.gather(rows)
    whole = data.tobytes()
    return [whole[start:stop].decode() for start, stop in pairwise(starts)]
