"""Find rows with similar vectors without comparing all pairs.

Rows are dealt to the nearest of some centres (spherical k-means on a sample), each row to the nearest two,
and compared exactly within a centre's rows, block by block. Two rows that are close almost always share a
centre; how often they do is measured on a sample of rows that are compared with all others.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from trellis_data.dedup import union_find
from trellis_data.dedup.keys import new_forest
from trellis_data.dedup.number_columns import Column

#: Rows below which all are compared with all.
ALL_WITH_ALL = 8192
_ROWS_PER_CENTRE = 1000
_MOST_CENTRES = 4096
_SAMPLE_PER_CENTRE = 32
_ROUNDS = 8
_BLOCK = 2048
_PROBED = 100


class Vectors:
    """Vectors on disk, read by row."""

    def __init__(self, folders: Sequence[Path], size: int) -> None:
        self._column = Column(folders, "vectors", np.float16)
        self.size = size

    def __len__(self) -> int:
        return len(self._column) // max(self.size, 1)

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row and the vectors of each block, in order."""
        for first in range(0, len(self), _BLOCK):
            yield first, self.range(first, min(first + _BLOCK, len(self)))

    def range(self, first: int, last: int) -> np.ndarray:
        """Return the vectors of the rows from ``first`` up to, but not including, ``last``."""
        values = self._column.read(first * self.size, last * self.size)
        return values.reshape(-1, self.size).astype(np.float32)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows (ascending)."""
        out = np.empty((len(rows), self.size), dtype=np.float32)
        breaks = np.flatnonzero(np.diff(rows) > 1) + 1
        for run in np.split(np.arange(len(rows)), breaks):
            if len(run):
                out[run] = self.range(int(rows[run[0]]), int(rows[run[-1]]) + 1)
        return out


def join_close(vectors: Vectors, threshold: float, seed: int) -> tuple[np.ndarray, dict[str, float]]:
    """Join close vectors; return the first row of each row's cluster, and the recall of a sample."""
    parents = new_forest(len(vectors))
    if len(vectors) <= ALL_WITH_ALL:
        _join_bucket(vectors, np.arange(len(vectors)), threshold, parents)
        union_find.flatten(parents)
        return parents, {"buckets": 1, "recall_on_sample": 1.0}
    centres = _centres(vectors, seed)
    first, second = _assign(vectors, centres)
    for number in range(len(centres)):
        rows = np.flatnonzero((first == number) | (second == number))
        _join_bucket(vectors, rows, threshold, parents)
    union_find.flatten(parents)
    return parents, {"buckets": len(centres), "recall_on_sample": _recall(vectors, threshold, parents, seed)}


def _join_bucket(vectors: Vectors, rows: np.ndarray, threshold: float, parents: np.ndarray) -> None:
    for start in range(0, len(rows), _BLOCK):
        mine = rows[start : start + _BLOCK]
        left = vectors.at(mine)
        for other in range(start, len(rows), _BLOCK):
            theirs = rows[other : other + _BLOCK]
            right = left if other == start else vectors.at(theirs)
            ones, others = np.nonzero(left @ right.T >= threshold)
            if other == start:
                ones, others = ones[ones < others], others[ones < others]
            union_find.join_pairs(parents, mine[ones], theirs[others], np.ones(len(ones), dtype=bool))


def _centres(vectors: Vectors, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    count = min(_MOST_CENTRES, max(2, len(vectors) // _ROWS_PER_CENTRE))
    size = min(len(vectors), count * _SAMPLE_PER_CENTRE)
    sample = vectors.at(np.sort(random.choice(len(vectors), size, replace=False)))
    centres = sample[random.choice(size, count, replace=False)]
    for _ in range(_ROUNDS):
        nearest = np.concatenate(
            [np.argmax(sample[at : at + _BLOCK] @ centres.T, axis=1) for at in range(0, size, _BLOCK)]
        )
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, sample)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.where(lengths == 0, 1, lengths), centres)
    return np.asarray(centres, dtype=np.float32)


def _assign(vectors: Vectors, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest and the second nearest center of each row."""
    first = np.empty(len(vectors), dtype=np.uint16)
    second = np.empty(len(vectors), dtype=np.uint16)
    for at, block in vectors.blocks():
        best = np.argpartition(-(block @ centres.T), 1, axis=1)[:, :2]
        first[at : at + len(block)], second[at : at + len(block)] = best[:, 0], best[:, 1]
    return first, second


def _recall(vectors: Vectors, threshold: float, parents: np.ndarray, seed: int) -> float:
    """Estimate the recall: of the close pairs of some rows, the share that is in one cluster."""
    rows = np.sort(
        np.random.default_rng(seed).choice(len(vectors), min(_PROBED, len(vectors)), replace=False)
    )
    probes = vectors.at(rows)
    close = joined = 0
    for at, block in vectors.blocks():
        ones, others = np.nonzero(probes @ block.T >= threshold)
        different = rows[ones] != others + at
        close += int(different.sum())
        joined += int((parents[rows[ones]] == parents[others + at])[different].sum())
    return joined / close if close else 1.0
