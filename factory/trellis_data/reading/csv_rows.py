"""Rows of CSV and TSV files, whose columns become numbers only where nothing is lost by it."""

import csv
import io
import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from trellis_data.reading.blocks import SourceRow
from trellis_data.reading.json_values import TOO_LONG
from trellis_data.reading.problems import (
    MAX_LEAF_COLUMNS,
    MAX_ROW_BYTES,
    RowProblem,
    UnreadableFile,
    shorten,
)

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Of a record; more are those of a quotation mark that is never closed.
_MAX_LINES = 100_000
#: A header this long is one that nobody wrote.
_MAX_HEADER_CHARACTERS = 1024 * 1024


class _Record(NamedTuple):
    line: int
    cells: list[str]


def read_csv(open_stream: Callable[[], BinaryIO]) -> Iterator[SourceRow | RowProblem]:
    """Read the rows of UTF-8 text, with problems in the place of bad ones; reads the text twice."""
    header, types = _learn_columns(open_stream)
    records = _records(open_stream)
    next(records)
    for row, record in enumerate(records, start=1):
        if isinstance(record, RowProblem):
            yield RowProblem(record.line, row, record.reason, code=record.code, raw=record.raw)
            continue
        problem = _why_bad(record, len(header))
        if problem is not None:
            code, reason = problem
            yield RowProblem(record.line, row, reason, code=code, raw=shorten(",".join(record.cells)))
            continue
        value = {name: _typed(cell, types[name]) for name, cell in zip(header, record.cells, strict=True)}
        yield SourceRow(record.line, value, sum(map(len, record.cells)))


def _why_bad(record: _Record, width: int) -> tuple[str, str] | None:
    if len(record.cells) != width:
        return "cell_count", f"{len(record.cells)} cells, but the header has {width} columns"
    for cell in record.cells:
        if not cell.isascii() and _SURROGATE.search(cell):
            return "bad_encoding", "the row is not in the encoding of the file"
        if "\x00" in cell:
            return "nul_byte", "the row holds a NUL byte"
    return None


def _learn_columns(open_stream: Callable[[], BinaryIO]) -> tuple[list[str], dict[str, str]]:
    """Find the header and the type of each column in one pass over the cells.

    A column becomes integer or number only when each of its cells could be written back
    exactly as it stood: "007", "0.50" and "true" stay text, and so does "5" beside "2.5", which
    would come back as "5.0" and no longer be the answer that a reward compares with.
    """
    records = _records(open_stream)
    header = _check_header(next(records, _Record(1, [])))
    candidates = {name: {"integer", "number"} for name in header}
    is_filled = dict.fromkeys(header, False)
    for record in records:
        if isinstance(record, RowProblem) or _why_bad(record, len(header)):
            continue
        for name, cell in zip(header, record.cells, strict=True):
            if cell:
                is_filled[name] = True
                if candidates[name]:
                    candidates[name] = {kind for kind in candidates[name] if _reads_as(cell, kind)}
    types = {
        name: next(
            (kind for kind in ("integer", "number") if is_filled[name] and kind in candidates[name]), "text"
        )
        for name in header
    }
    return header, types


def _check_header(record: _Record | RowProblem) -> list[str]:
    if isinstance(record, RowProblem):
        raise UnreadableFile("bad_header", f"The header cannot be read: {record.reason}.", line=record.line)
    header = [name.strip() for name in record.cells]
    if len(header) > MAX_LEAF_COLUMNS:
        raise UnreadableFile(
            "too_many_columns", f"The header names {len(header)} columns; the limit is {MAX_LEAF_COLUMNS}."
        )
    seen: set[str] = set()
    for position, name in enumerate(header, start=1):
        problem = None
        if not name:
            problem = f"Column {position} of the header has no name."
        elif name in seen:
            problem = f"The header names the column '{name}' twice."
        elif "\x00" in name or _SURROGATE.search(name):
            problem = f"Column {position} of the header is no text."
        if problem:
            raise UnreadableFile("bad_header", problem, line=record.line)
        seen.add(name)
    return header


def _reads_as(cell: str, kind: str) -> bool:
    if kind == "integer":
        return _INTEGER.fullmatch(cell) is not None
    try:
        number = float(cell)
    except ValueError:
        return False
    return math.isfinite(number) and repr(number) == cell


def _typed(cell: str, kind: str) -> str | int | float | None:
    if kind == "text":
        return cell
    if not cell:
        return None
    return int(cell) if kind == "integer" else float(cell)


class _Lines:
    """Physical lines, of which those of a bad record can be given back."""

    def __init__(self, file: io.TextIOWrapper) -> None:
        self._file = file
        self._again: deque[str] = deque()
        #: Lines that the record in work has taken, and how many characters they have.
        self.taken: list[str] = []
        self.size = 0
        #: Number of the first of them.
        self.number = 1

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else self._file.readline(MAX_ROW_BYTES + 1)
        if not line:
            raise StopIteration
        self.taken.append(line)
        self.size += len(line)
        if self.size > MAX_ROW_BYTES or len(self.taken) > _MAX_LINES:
            raise csv.Error(TOO_LONG)
        return line

    def finish_record(self) -> None:
        """Finish the record that consists of the lines taken so far."""
        self.number += len(self.taken)
        self.taken, self.size = [], 0

    def give_back_all_but_first(self) -> str:
        """Take only the first line for bad; what was read after it may be good rows."""
        first, *rest = self.taken
        if len(first) > MAX_ROW_BYTES:
            self._skip_line(first)
        self._again.extendleft(reversed(rest))
        self.number += 1
        self.taken, self.size = [], 0
        return first

    def _skip_line(self, piece: str) -> None:
        while piece and not piece.endswith("\n"):
            piece = self._file.readline(MAX_ROW_BYTES)


def _records(open_stream: Callable[[], BinaryIO]) -> Iterator[_Record | RowProblem]:
    """Yield the records that are not blank; the first is the header."""
    csv.field_size_limit(MAX_ROW_BYTES)
    with io.TextIOWrapper(open_stream(), "utf-8", errors="surrogateescape", newline="") as file:
        header = file.readline(_MAX_HEADER_CHARACTERS * 16)
        delimiter = _delimiter_of(header[:_MAX_HEADER_CHARACTERS])
    with io.TextIOWrapper(open_stream(), "utf-8", errors="surrogateescape", newline="") as file:
        lines = _Lines(file)
        while True:
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            try:
                for cells in reader:
                    number = lines.number
                    lines.finish_record()
                    if cells:
                        yield _Record(number, cells)
                return
            except csv.Error as error:
                reason = str(error) if str(error) == TOO_LONG else f"not valid CSV: {error}"
                number = lines.number
                code = "too_long" if reason == TOO_LONG and len(lines.taken) == 1 else "not_csv"
                raw = shorten(lines.give_back_all_but_first())
                yield RowProblem(number, 0, reason, code=code, raw=raw)


def _delimiter_of(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",\t;", key=bare.count)
