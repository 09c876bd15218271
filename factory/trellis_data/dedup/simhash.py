"""Near-duplicates by SimHash: 64-bit fingerprints that differ in few bits (Charikar 2002, Manku 2007).

A fingerprint is cut into one block more than bits may differ, so that two that are close agree in one block
at least (no pair is missed). Rows of an equal block are compared bit by bit. Cheaper than MinHash on disk,
eight bytes a row, but what it promises is a distance of fingerprints, not a share of text: short texts need
a small distance.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.dedup.clusters import reduce_clusters
from trellis_data.dedup.deduplicator import Deduplicator
from trellis_data.dedup.number_columns import Column, ColumnWriter
from trellis_data.dedup.sources import DuplicateParams, TextBuffers
from trellis_data.layout import Batch
from trellis_data.operator import parameter

#: Rows of a block that a row is compared with at most; bounds the time where a block is very common.
WINDOW = 4096
_BITS = 64


class SimHashParams(DuplicateParams):
    """Parameters of ``simhash_duplicates``."""

    distance: int = parameter(
        3,
        title=Text(en="Distance", zh="汉明距离"),
        help=Text(
            en="Max number of differing bits (of 64) between fingerprints of duplicates.",
            zh="重复行的 64 位指纹最多相差的位数。",
        ),
        ge=0,
        le=7,
        unit="bits",
    )
    shingle: int = parameter(
        3,
        title=Text(en="Shingle length", zh="片段长度"),
        help=Text(
            en="Words per shingle; characters for Chinese.",
            zh="作为一个片段的词数；中文按字计算。",
        ),
        ge=1,
        le=20,
        unit="words",
    )


class SimHashDuplicates(Deduplicator):
    """Keeps one row of those whose fingerprints are close."""

    id: ClassVar[str] = "simhash_duplicates"
    title: ClassVar[Text] = Text(en="Near-duplicates (SimHash)", zh="近似去重（SimHash）")
    help: ClassVar[Text] = Text(
        en="Keeps one row from each cluster with similar 64-bit fingerprints.",
        zh="对 64 位指纹仅相差少数几位的行只保留一行。",
    )
    reason: ClassVar[str] = "near_duplicate"
    Params: ClassVar[Any] = SimHashParams

    params: SimHashParams

    def write(self, writer: ColumnWriter, batch: Batch, texts: pl.Series) -> None:  # noqa: ARG002
        from trellis_data.dedup.alphabet import tables
        from trellis_data.dedup.kernels import simhashes

        buffers = TextBuffers.of(texts)
        writer.append("hash", simhashes(buffers.data, buffers.offsets, *tables(), self.params.shingle))

    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        from trellis_data.dedup import union_find
        from trellis_data.dedup.keys import join_equal, sorted_keys

        column = Column(scans, "hash", np.uint64)
        values, parents = join_equal(column)
        # One of several rows with the same fingerprint stands for all of them.
        taken = (parents == np.arange(len(parents), dtype=np.uint32)) & (values != 0)
        left_out = 0
        for low, high in blocks(self.params.distance):
            for keys in sorted_keys(column, taken, shift=low, bits=min(32, high - low)):
                left_out += union_find.join_near_hashes(keys, values, parents, self.params.distance, WINDOW)
        union_find.flatten(parents)

        def similarity(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
            return np.asarray(
                1.0 - union_find.hamming(values[rows], values[others]) / _BITS, dtype=np.float32
            )

        findings = reduce_clusters(scans, folder, parents, self.params.keep, similarity)
        return findings | {"comparisons_left_out": int(left_out)}


def blocks(distance: int) -> list[tuple[int, int]]:
    """Return the range of bits of each block."""
    count = distance + 1
    edges = [number * _BITS // count for number in range(count + 1)]
    return list(pairwise(edges))
