"""Rows of Parquet files in tables bounded by rows and by bytes: memory is flat however long rows are.

What is done with rows does not depend on where they are cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

#: Of a table in memory; only a row that is longer by itself makes a larger one.
MOST_BYTES = 64 * 2**20
#: Rows that are decoded at once. A file tells how long its rows are on average, but not where the long ones
#: are nor how often it points at one long value: so few rows at a time bound both, and cost little.
_STEP_ROWS = 256


def read_tables(
    file: pq.ParquetFile, rows: int, groups: Sequence[int] | None = None, most_bytes: int = MOST_BYTES
) -> Iterator[pa.Table]:
    """Read a file, or some of its row groups, in tables of at most so many rows and bytes."""
    chosen = list(range(file.metadata.num_row_groups) if groups is None else groups)
    step = _step(file.metadata, chosen, most_bytes)
    held = _Held()
    # Whoever reads is one of several processes already.
    for batch in file.iter_batches(step, row_groups=chosen, use_threads=False) if chosen else ():
        for piece in _halved(batch, most_bytes):
            if held.rows and held.bytes + piece.nbytes > most_bytes:
                yield held.take()
            rest = piece
            while held.rows + rest.num_rows >= rows:
                room = rows - held.rows
                held.add(rest.slice(0, room))
                rest = rest.slice(room)
                yield held.take()
            held.add(rest)
    if held.rows:
        yield held.take()


@dataclass
class _Held:
    """Rows that become one table."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self.batches.append(batch)
            self.rows += batch.num_rows
            self.bytes += batch.nbytes

    def take(self) -> pa.Table:
        table = pa.Table.from_batches(self.batches).combine_chunks()
        self.batches, self.rows, self.bytes = [], 0, 0
        return table


def _step(metadata: pq.FileMetaData, groups: Sequence[int], most_bytes: int) -> int:
    """Choose how many rows of these groups to decode at once."""
    sizes = [metadata.row_group(group) for group in groups]
    longest = max((each.total_byte_size / max(1, each.num_rows) for each in sizes), default=0.0)
    return max(1, min(_STEP_ROWS, int(most_bytes / max(1.0, longest))))


def _halved(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Split a batch into pieces that are small enough, or of one row each."""
    if batch.num_rows < 2 or batch.nbytes <= most_bytes:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halved(batch.slice(0, half), most_bytes)
    yield from _halved(batch.slice(half), most_bytes)
