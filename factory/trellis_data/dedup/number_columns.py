"""Columns of plain numbers on disk, which pass millions of values from a shard's scan to clustering.

One file a column and shard, appended batch by batch, read in pieces. Reads go through ordinary reads and
not through memory maps, whose pages would count as this process's memory.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

#: Values read at once.
PIECE = 1 << 20


class ColumnWriter:
    """Appends to the column files of one folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> "ColumnWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def append(self, name: str, values: np.ndarray) -> None:
        """Add values to a column; the type is the caller's to remember."""
        if name not in self._files:
            self._files[name] = (self._folder / name).open("wb")
        np.ascontiguousarray(values).tofile(self._files[name])


class Column:
    """One column over all shards' folders, in order."""

    def __init__(self, folders: Sequence[Path], name: str, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._paths = [folder / name for folder in folders]
        lengths = [path.stat().st_size // self.dtype.itemsize if path.exists() else 0 for path in self._paths]
        #: Where each shard's values begin, and after the last one the number of all.
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def pieces(self, size: int = PIECE) -> Iterator[tuple[int, np.ndarray]]:
        """Yield pieces of the column from first to last, each with the position of its first value."""
        for shard, path in enumerate(self._paths):
            at, stop = int(self.starts[shard]), int(self.starts[shard + 1])
            if at == stop:
                continue
            with path.open("rb") as file:
                while at < stop:
                    values = np.fromfile(file, self.dtype, min(size, stop - at))
                    yield at, values
                    at += len(values)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the values in a range of positions."""
        parts = []
        shard = int(np.searchsorted(self.starts, start, side="right")) - 1
        while start < stop:
            end = min(stop, int(self.starts[shard + 1]))
            if end > start:
                offset = (start - int(self.starts[shard])) * self.dtype.itemsize
                parts.append(np.fromfile(self._paths[shard], self.dtype, end - start, offset=offset))
            start = max(start, end)
            shard += 1
        return np.concatenate(parts) if parts else np.empty(0, self.dtype)

    def whole(self) -> np.ndarray:
        """Read all values, for columns that fit into memory."""
        values = np.empty(len(self), self.dtype)
        for at, piece in self.pieces():
            values[at : at + len(piece)] = piece
        return values


class Ragged:
    """Values of varying number a row: a flat column and one of counts."""

    #: Rows whose values lie closer together than this many values are read in one go.
    GAP = 1 << 14
    #: Values that one read takes at most, unless a single row has more.
    READ = 1 << 22

    def __init__(self, folders: Sequence[Path], name: str, dtype: Any) -> None:
        self._flat = Column(folders, name, dtype)
        counts = Column(folders, f"{name}.counts", np.uint32)
        self.offsets = np.zeros(len(counts) + 1, dtype=np.int64)
        for at, piece in counts.pieces():
            self.offsets[at + 1 : at + 1 + len(piece)] = piece
        np.cumsum(self.offsets, out=self.offsets)

    @staticmethod
    def append(writer: ColumnWriter, name: str, flat: np.ndarray, counts: np.ndarray) -> None:
        """Add rows to what will be read as ``Ragged``."""
        writer.append(name, flat)
        writer.append(f"{name}.counts", counts.astype(np.uint32))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Count the values of these rows."""
        return np.asarray(self.offsets[rows + 1] - self.offsets[rows])

    def gather(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Concatenate the values of some rows (ascending), and return where each row begins (plus end)."""
        begins, ends = self.offsets[rows], self.offsets[rows + 1]
        starts = np.concatenate([[0], np.cumsum(ends - begins)]).astype(np.int64)
        out = np.empty(int(starts[-1]), self._flat.dtype)
        first = 0
        while first < len(rows):
            last = self._last_of_read(begins, ends, first)
            values = self._flat.read(int(begins[first]), int(ends[last]))
            within = _ranges(begins[first : last + 1] - begins[first], ends[first : last + 1] - begins[first])
            out[starts[first] : starts[last + 1]] = values[within]
            first = last + 1
        return out, starts

    def _last_of_read(self, begins: np.ndarray, ends: np.ndarray, first: int) -> int:
        limit = int(np.searchsorted(ends, begins[first] + self.READ, side="right"))
        stop = max(first + 1, limit)
        gaps = begins[first + 1 : stop] - ends[first : stop - 1]
        wide = np.flatnonzero(gaps > self.GAP)
        return first + int(wide[0]) if len(wide) else stop - 1


def _ranges(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Concatenate the ranges: ``[b0, …, e0 - 1, b1, …, e1 - 1, …]``."""
    lengths = ends - begins
    total = int(lengths.sum())
    steps = np.ones(total, dtype=np.int64)
    filled = lengths > 0
    if not total:
        return steps
    starts = np.concatenate([[0], np.cumsum(lengths[filled])])[:-1]
    firsts, lasts = begins[filled], ends[filled] - 1
    steps[starts[0]] = firsts[0]
    steps[starts[1:]] = firsts[1:] - lasts[:-1]
    return np.cumsum(steps)
