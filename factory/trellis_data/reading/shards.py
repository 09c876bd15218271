"""Parquet shards that are written as rows come and get the types of all rows in the end.

Types are learnt while writing. A shard is written with the types known by then; when later rows widened
them, the shards before are written again from their own Parquet, which costs a tenth of reading the
source a second time, and nothing where types do not change (late unification).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis_data.reading.column_types import CONVERSION_ERRORS, ColumnTypes, explain_misfit
from trellis_data.reading.conform import conform, storable, storable_type
from trellis_data.reading.problems import RowProblem, shorten
from trellis_data.reading.quarantine import Quarantine

MAX_SHARD_ROWS = 50_000
#: Of the rows in memory, which Parquet packs to a third or less.
MAX_SHARD_BYTES = 64 * 1024 * 1024
#: Small, so that a page of rows costs one or two.
_GROUP_ROWS = 2048
#: A group ends before its rows where they are long.
_GROUP_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Origin:
    """Where the rows of a piece come from."""

    source: str
    #: One line a row; None where the source has no lines.
    lines: np.ndarray | None
    #: One number a row, counted over the source's rows.
    rows: np.ndarray


@dataclass
class _Shard:
    path: Path
    kind: pa.StructType
    origins: list[Origin]
    row_count: int


class ShardWriter:
    """Gathers rows and writes them to ``folder`` as ``part-00000.parquet`` and so on."""

    def __init__(self, folder: Path, types: ColumnTypes, quarantine: Quarantine) -> None:
        self._folder = folder
        self._types = types
        self._quarantine = quarantine
        self._pieces: list[tuple[pa.StructArray, Origin]] = []
        self._rows = self._bytes = 0
        self._shards: list[_Shard] = []

    def add(self, array: pa.StructArray, origin: Origin) -> None:
        """Take rows; their types are among those of ``types``."""
        step = MAX_SHARD_ROWS - self._rows
        while len(array) > step:
            self._take(array.slice(0, step), _slice(origin, 0, step))
            self._flush()
            array, origin = array.slice(step), _slice(origin, step, len(array) - step)
            step = MAX_SHARD_ROWS
        if len(array):
            self._take(array, origin)
        if self._rows >= MAX_SHARD_ROWS or self._bytes >= MAX_SHARD_BYTES:
            self._flush()

    def _take(self, array: pa.StructArray, origin: Origin) -> None:
        self._pieces.append((array, origin))
        self._rows += len(array)
        self._bytes += array.nbytes

    def finish(self) -> list[_Shard]:
        """Write what is left, and shards again whose types were widened since."""
        self._flush()
        for shard in self._shards:
            if not shard.kind.equals(self._types.struct):
                self._rewrite(shard)
        return self._shards

    def _flush(self) -> None:
        self._rows = self._bytes = 0
        kind = self._types.struct
        if not kind.num_fields:
            return  # Parquet has no rows without columns: these wait for the first one that has any
        pieces, self._pieces = self._pieces, []
        if not pieces:
            return
        fitting = [self._fit(array, kind, origin) for array, origin in pieces]
        del pieces
        path = self._folder / f"part-{len(self._shards):05d}.parquet"
        count = _write(path, kind, (array for array, _ in fitting))
        self._shards.append(_Shard(path, kind, [origin for _, origin in fitting], count))

    def _rewrite(self, shard: _Shard) -> None:
        """Write a shard again with the types of all rows."""
        kind = self._types.struct
        places = shard.origins
        origins: list[Origin] = []

        def read() -> Iterator[pa.StructArray]:
            waiting = [(origin, 0) for origin in places]
            with pq.ParquetFile(shard.path) as file:
                for batch in file.iter_batches(batch_size=_GROUP_ROWS, use_threads=False):
                    array, done = batch.to_struct_array(), 0
                    while done < len(array):
                        origin, used = waiting.pop(0)
                        size = min(len(origin.rows) - used, len(array) - done)
                        piece = _slice(origin, used, size)
                        if used + size < len(origin.rows):
                            waiting.insert(0, (origin, used + size))
                        fitting, kept = self._fit(array.slice(done, size), kind, piece)
                        origins.append(kept)
                        done += size
                        yield fitting

        draft = shard.path.with_suffix(".again")
        shard.row_count = _write(draft, kind, read())
        draft.replace(shard.path)
        shard.kind, shard.origins = kind, origins

    def _fit(
        self, array: pa.StructArray, kind: pa.StructType, origin: Origin
    ) -> tuple[pa.StructArray, Origin]:
        """Convert the rows to these types; drop rows with an integer too long for a column of decimals."""
        try:
            return conform(array, kind), origin
        except CONVERSION_ERRORS:
            kept: list[pa.Array] = []
            at: list[int] = []
            for index in range(len(array)):
                one = array.slice(index, 1)
                try:
                    kept.append(conform(one, kind))
                    at.append(index)
                except CONVERSION_ERRORS as error:
                    self._leave_out(one, kind, _slice(origin, index, 1), error)
        places = np.array(at, dtype=np.int64)
        lines = None if origin.lines is None else origin.lines[places]
        fitting = pa.concat_arrays(kept) if kept else pa.array([], type=kind)
        return fitting, Origin(origin.source, lines, origin.rows[places])

    def _leave_out(self, row: pa.StructArray, kind: pa.StructType, origin: Origin, error: Exception) -> None:
        value = row[0].as_py()
        column, reason = explain_misfit(value, kind) or (None, str(error)[:300])
        line = None if origin.lines is None else int(origin.lines[0])
        raw = shorten(str(value))
        number = int(origin.rows[0])
        self._quarantine.add(
            origin.source, RowProblem(line, number, reason, column, code="type_conflict", raw=raw)
        )


def _slice(origin: Origin, start: int, size: int) -> Origin:
    part = slice(start, start + size)
    lines = None if origin.lines is None else origin.lines[part]
    return Origin(origin.source, lines, origin.rows[part])


def _write(path: Path, kind: pa.StructType, arrays: Iterator[pa.StructArray]) -> int:
    """Write a file under another name until it is complete; how many rows it holds."""
    draft, count = path.with_suffix(".draft"), 0
    schema = pa.schema(list(storable_type(kind)))
    with pq.ParquetWriter(draft, schema, compression="zstd", compression_level=1) as writer:
        for table in _groups(arrays):
            writer.write_table(table, row_group_size=_GROUP_ROWS)
            count += table.num_rows
    draft.replace(path)
    return count


def _groups(arrays: Iterator[pa.StructArray]) -> Iterator[pa.Table]:
    """Join arrays to row groups: some files are read a few rows at a time."""
    held: list[pa.RecordBatch] = []
    for array in arrays:
        if len(array):
            held.append(pa.RecordBatch.from_struct_array(storable(array)))
        is_full = sum(each.num_rows for each in held) >= _GROUP_ROWS
        if held and (is_full or sum(each.nbytes for each in held) >= _GROUP_BYTES):
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
