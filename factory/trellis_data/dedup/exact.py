"""Exact duplicates: rows of the same text, byte by byte or after what does not matter is taken away.

Survey writes one 64-bit hash a row, settling sorts the hashes. Among ten million different rows the chance
that any two share a hash is below one in 300,000.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from trellis_contracts.recipe import Text

from trellis_data.dedup.clusters import apply_clusters, settle_clusters
from trellis_data.dedup.columns import Column, ColumnWriter
from trellis_data.dedup.sources import DuplicateParams, TextBuffers, check_score, survey_rows
from trellis_data.layout import Batch, Layout
from trellis_data.operator import GlobalOperator, knob
from trellis_data.outcome import Outcome


class ExactParams(DuplicateParams):
    """Parameters of ``exact_duplicates``."""

    ignore: Literal["nothing", "spaces_and_case", "marks"] = knob(
        "spaces_and_case",
        title=Text(en="Differences that do not count", zh="忽略的差异"),
        help=Text(
            en="Nothing, white space with case and character width, or punctuation marks as well.",
            zh="不忽略任何差异；忽略空白、大小写与全半角；或连同标点一并忽略。",
        ),
    )


class ExactDuplicates(GlobalOperator):
    """Keeps one row of those with the same text."""

    id: ClassVar[str] = "exact_duplicates"
    title: ClassVar[Text] = Text(en="Exact duplicates", zh="精确去重")
    help: ClassVar[Text] = Text(
        en="Keeps one row of those with the same text.", zh="对文本相同的行只保留一行。"
    )
    group: ClassVar[Any] = "deduplicate"
    Params: ClassVar[Any] = ExactParams

    params: ExactParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:  # noqa: ARG002 - all layouts have texts
        check_score(schema, self.params)

    def survey(self, batches: Iterator[Batch], folder: Path) -> None:
        with ColumnWriter(folder) as writer:
            for batch in batches:
                writer.append("hash", self._hashes(TextBuffers.of(survey_rows(writer, batch, self.params))))

    def settle(self, surveys: Sequence[Path], folder: Path) -> dict[str, Any]:
        from trellis_data.dedup import joining
        from trellis_data.dedup.keys import new_forest, sorted_keys

        column = Column(surveys, "hash", np.uint64)
        values = column.whole()
        parents = new_forest(len(column))
        for keys in sorted_keys(column, values != 0, shift=32):
            joining.join_equals(keys, values, parents)
        joining.flatten(parents)
        return settle_clusters(surveys, folder, parents, self.params.keep, _all_alike)

    def apply(self, batch: Batch, settled: Path) -> Outcome:
        return apply_clusters(batch, settled, "exact_duplicate")

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


def _all_alike(rows: np.ndarray, others: np.ndarray) -> np.ndarray:  # noqa: ARG001 - a Similarity
    return np.ones(len(rows), dtype=np.float32)
