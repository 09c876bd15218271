"""Cuts a stream of rows into chunks by what is in them, so that versions share all chunks they can.

A chunk ends after a row whose digest is divisible by ``_DIVISOR``: an inserted, changed or
removed row moves the edges of its own chunk and nothing beyond the next such row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from trellis_data.versions.hashing import DIGEST, digest_rows

#: Rows of a chunk: at least, about (beyond the least), at most; the last one of a split may be smaller.
LEAST_ROWS, MOST_ROWS = 1024, 32_768
_DIVISOR = 8192
#: A chunk ends where its rows' JSON reaches this, whatever they hold.
MOST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Chunk:
    """Rows that are stored together."""

    table: pa.Table
    digests: np.ndarray
    #: Of the rows as JSON.
    size_bytes: int


@dataclass
class _Pending:
    tables: list[pa.Table] = field(default_factory=list)
    digests: np.ndarray = field(default_factory=lambda: np.empty(0, DIGEST))
    sizes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, table: pa.Table) -> None:
        digests, sizes = digest_rows(table)
        self.tables.append(table)
        self.digests = np.concatenate([self.digests, digests])
        self.sizes = np.concatenate([self.sizes, sizes])

    def take(self, rows: int) -> Chunk:
        whole = pa.concat_tables(self.tables)
        chunk = Chunk(
            whole.slice(0, rows).combine_chunks(), self.digests[:rows], int(self.sizes[:rows].sum())
        )
        self.tables = [whole.slice(rows)]
        self.digests, self.sizes = self.digests[rows:], self.sizes[rows:]
        return chunk


def cut_chunks(tables: Iterable[pa.Table]) -> Iterator[Chunk]:
    """Cut the rows of all tables, in order, into chunks; holds one chunk and one table at a time."""
    pending = _Pending()
    for table in tables:
        if table.num_rows:
            pending.add(table)
        while (rows := _first_edge(pending.digests, pending.sizes)) is not None:
            yield pending.take(rows)
    if len(pending.digests):
        yield pending.take(len(pending.digests))


def _first_edge(digests: np.ndarray, sizes: np.ndarray) -> int | None:
    """Return how many rows the first chunk has, or None if its end is not known yet."""
    edges = []
    marks = np.flatnonzero(digests["low"][LEAST_ROWS - 1 : MOST_ROWS] % np.uint64(_DIVISOR) == 0)
    if len(marks):
        edges.append(int(marks[0]) + LEAST_ROWS)
    if len(digests) >= MOST_ROWS:
        edges.append(MOST_ROWS)
    held = np.cumsum(sizes[:MOST_ROWS])
    full = int(np.searchsorted(held, MOST_BYTES))
    if full < len(held):
        edges.append(full + 1)
    return min(edges, default=None)
