"""Near-duplicates by MinHash: rows that share most of their runs of words.

A text is the set of its shingles: runs of n tokens, where a token is a word, or one character in scripts
without spaces (Chinese, Japanese, Thai). Two texts are near-duplicates where the Jaccard similarity of
their sets reaches the threshold.

Scan writes, per row, the shingles' hashes and one 32-bit hash a band of the MinHash signature (see
``bands`` for why bands find similar sets, and how often). Reducing sorts one band at a time; rows with an
equal band hash become candidates, and a candidate pair is joined only where the exact Jaccard of its
shingles, read back from disk, reaches the threshold: what merely collides is never merged. The one error
left is a pair that no band brings together, at most 2 % right at the threshold. Clusters are the connected
components.

Memory: about 30 bytes a row while reducing, whatever the texts' length.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from trellis_contracts.recipe import Text

from trellis_data.dedup.bands import Bands, choose_bands
from trellis_data.dedup.clusters import reduce_clusters
from trellis_data.dedup.deduplicator import Deduplicator
from trellis_data.dedup.number_columns import ColumnWriter, Ragged
from trellis_data.dedup.sources import DuplicateParams, TextBuffers
from trellis_data.layout import Batch
from trellis_data.operator import Context, parameter


class MinHashParams(DuplicateParams):
    """Parameters of ``minhash_duplicates``."""

    threshold: float = parameter(
        0.8,
        title=Text(en="Similarity", zh="相似度阈值"),
        help=Text(
            en="Rows with at least this Jaccard similarity are duplicates.",
            zh="两行文本片段的 Jaccard 相似度达到该值即视为重复。",
        ),
        ge=0.3,
        le=1.0,
    )
    shingle: int = parameter(
        5,
        title=Text(en="Shingle length", zh="片段长度"),
        help=Text(
            en="Words per shingle; characters for Chinese.",
            zh="作为一个片段比较的词数；中文按字计算。",
        ),
        ge=1,
        le=20,
        unit="words",
    )
    permutations: int = parameter(
        128,
        title=Text(en="Hash functions", zh="哈希函数个数"),
        help=Text(
            en="More improve recall near the threshold but take longer.",
            zh="越多越能找到接近阈值的重复，但耗时更长。",
        ),
        ge=16,
        le=1024,
    )


class MinHashDuplicates(Deduplicator):
    """Keeps one row of those that share most of their shingles."""

    id: ClassVar[str] = "minhash_duplicates"
    title: ClassVar[Text] = Text(en="Near-duplicates (MinHash)", zh="近似去重（MinHash）")
    help: ClassVar[Text] = Text(
        en="Keeps one row from each cluster with mostly identical n-grams.",
        zh="对大部分词片段相同的行只保留一行。",
    )
    reason: ClassVar[str] = "near_duplicate"
    Params: ClassVar[Any] = MinHashParams

    params: MinHashParams

    def __init__(self, params: MinHashParams, context: Context) -> None:
        super().__init__(params, context)
        self.bands = choose_bands(params.threshold, params.permutations)

    def write(self, writer: ColumnWriter, batch: Batch, texts: pl.Series) -> None:  # noqa: ARG002
        self._sketcher.write(writer, TextBuffers.of(texts))

    @cached_property
    def _sketcher(self) -> "Sketcher":
        return Sketcher(self.params.shingle, self.bands, self.context.seed)

    def reduce(self, scans: Sequence[Path], folder: Path) -> dict[str, Any]:
        from trellis_data.dedup.lsh import NearDuplicates

        near = NearDuplicates(scans, self.params.threshold, self.bands)
        parents = near.join()
        findings = reduce_clusters(scans, folder, parents, self.params.keep, near.similarity)
        return findings | {
            "bands": self.bands.number,
            "hashes_per_band": self.bands.rows,
            "recall_at_threshold": round(self.bands.probability(self.params.threshold), 4),
            "pairs_compared": near.compared,
            "pairs_similar": near.joined,
        }


class Sketcher:
    """Writes shingles and band hashes of texts."""

    def __init__(self, shingle: int, bands: Bands, seed: int) -> None:
        from trellis_data.dedup.alphabet import tables

        self._kinds, self._folded = tables()
        self._shingle, self._bands = shingle, bands
        random = np.random.default_rng(seed)
        size = bands.number * bands.rows
        # x -> a·x + b modulo 2^32 with odd a is a permutation of the 32-bit numbers.
        self._factors = random.integers(0, 1 << 32, size, dtype=np.uint32) | np.uint32(1)
        self._terms = random.integers(0, 1 << 32, size, dtype=np.uint32)

    def write(self, writer: ColumnWriter, texts: TextBuffers) -> None:
        """Append the columns ``shingles`` (ragged), ``whole`` and ``band-…`` for some rows."""
        from trellis_data.dedup.kernels import sketch

        bands = np.empty((self._bands.number, len(texts.lengths)), dtype=np.uint32)
        flat, counts, wholes = sketch(
            *(texts.data, texts.offsets, self._kinds, self._folded, self._shingle),
            *(self._factors, self._terms, self._bands.rows, bands),
        )
        Ragged.append(writer, "shingles", flat, counts)
        writer.append("whole", wholes)
        for number, hashes in enumerate(bands):
            writer.append(f"band-{number}", hashes)
