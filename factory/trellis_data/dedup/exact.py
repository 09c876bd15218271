"""Exact duplicates: rows of the same texts, byte by byte or after what does not matter is taken away.

Scan writes one 64-bit hash a row, reducing sorts the hashes. The hash tells columns and turns apart: the
same words split otherwise between question and answer are another row. Among ten million different rows the
chance that any two share a hash is below one in 300,000.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.dedup.clusters import reduce_clusters
from trellis_data.dedup.deduplicator import Deduplicator
from trellis_data.dedup.number_columns import Column, ColumnWriter
from trellis_data.dedup.sources import DuplicateParams, TextBuffers
from trellis_data.layout import Batch
from trellis_data.mixing import mix
from trellis_data.operator import parameter
from trellis_data.row_texts import texts_of


class ExactParams(DuplicateParams):
    """Parameters of ``exact_duplicates``."""

    ignore: Literal["nothing", "spaces_and_case", "marks"] = parameter(
        "spaces_and_case",
        title=Text(en="Ignore", zh="忽略的差异"),
        help=Text(
            en="What to ignore: nothing; whitespace, case and character width; or also punctuation.",
            zh="不忽略任何差异；忽略空白、大小写与全半角；或连同标点一并忽略。",
        ),
    )


class ExactDuplicates(Deduplicator):
    """Keeps one row of those with the same text."""

    id: ClassVar[str] = "exact_duplicates"
    title: ClassVar[Text] = Text(en="Exact duplicates", zh="精确去重")
    help: ClassVar[Text] = Text(
        en="Keeps one row from each group with identical text.", zh="对文本相同的行只保留一行。"
    )
    reason: ClassVar[str] = "exact_duplicate"
    Params: ClassVar[Any] = ExactParams

    params: ExactParams

    def write(self, writer: ColumnWriter, batch: Batch, texts: pl.Series) -> None:  # noqa: ARG002
        frame = texts_of(batch, self.params.where, self.params.columns)
        writer.append("hash", _hash_rows(frame, self._hashes(TextBuffers.of(frame["text"])), len(batch)))

    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        from trellis_data.dedup.keys import join_equal

        _, parents = join_equal(Column(scans, "hash", np.uint64))
        return reduce_clusters(scans, folder, parents, self.params.keep, _all_alike)

    def _hashes(self, texts: TextBuffers) -> np.ndarray:
        from trellis_data.dedup import alphabet, kernels

        if self.params.ignore == "nothing":
            hashes = kernels.byte_hashes(texts.data, texts.offsets)
        elif self.params.ignore == "spaces_and_case":
            _, folded = alphabet.tables()
            hashes = kernels.folded_hashes(texts.data, texts.offsets, alphabet.blanks(), folded)
        else:
            hashes = kernels.content_hashes(texts.data, texts.offsets, *alphabet.tables())
        return np.asarray(hashes)


def _hash_rows(frame: pl.DataFrame, hashes: np.ndarray, rows: int) -> np.ndarray:
    """Combine the hashes of a row's texts and their places into one hash per row; 0 for rows without text."""
    from trellis_data.dedup import kernels

    place = frame.select(pl.concat_str("field", "speaker", "turn", separator="\0")).to_series()
    buffers = TextBuffers.of(place)
    mixed = mix(hashes ^ kernels.byte_hashes(buffers.data, buffers.offsets))
    out = np.zeros(rows, dtype=np.uint64)
    said = hashes != 0
    np.add.at(out, frame["row"].to_numpy()[said], mixed[said])
    return out


def _all_alike(rows: np.ndarray, others: np.ndarray) -> np.ndarray:  # noqa: ARG001 - a Similarity
    return np.ones(len(rows), dtype=np.float32)
