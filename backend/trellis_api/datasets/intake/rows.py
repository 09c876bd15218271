"""Rows of JSON Lines, JSON arrays and CSV files, one at a time, with the line that each came from."""

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trellis_api.datasets.intake.kinds import FileKind
from trellis_api.datasets.intake.problems import MAX_ROW_BYTES, RowProblem, UnreadableFile

_CHUNK_CHARACTERS = 1024 * 1024
_SPACE = re.compile(r"[ \t\r\n]*")
_TOO_LONG = f"the row is longer than {MAX_ROW_BYTES // 1024 // 1024} MiB"
_TOO_DEEP = "the value is nested too deeply"


class SourceRow(NamedTuple):
    """One row as it stands in the file; ``size`` is its length in bytes, or characters."""

    line: int
    value: dict[str, Any]
    size: int


def read_rows(path: Path, kind: FileKind, encoding: str) -> Iterator[SourceRow | RowProblem]:
    """The rows of a text file, and in their place the problems of those that cannot be parsed.

    Memory holds one row at a time. Row numbers in problems count from 1.
    """
    if kind is FileKind.JSONL:
        return _read_json_lines(path, encoding)
    if kind is FileKind.JSON:
        return _read_json_array(path, encoding)
    if kind is FileKind.CSV:
        return _read_csv(path, encoding)
    raise ValueError(f"{kind} is not a text file")


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON; use null")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite)


def _explain(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg} (character {error.colno})"
    return f"not valid JSON: {error}"


def _kind_of(value: Any) -> str:
    names = {list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), "an object")


def _read_json_lines(path: Path, encoding: str) -> Iterator[SourceRow | RowProblem]:
    # 0x0A is never part of a longer character in UTF-8 and GB18030: bytes can be split into lines.
    with path.open("rb") as file:
        line = row = 0
        while data := file.readline(MAX_ROW_BYTES + 1):
            line += 1
            if len(data) > MAX_ROW_BYTES:
                yield RowProblem(line, row + 1, _TOO_LONG)
                return
            text = data.decode(encoding if line == 1 else encoding.removesuffix("-sig")).strip(" \t\r\n")
            if not text:
                continue
            row += 1
            try:
                value = _DECODER.decode(text)
            except RecursionError:
                yield RowProblem(line, row, _TOO_DEEP)
            except ValueError as error:
                yield RowProblem(line, row, _explain(error))
            else:
                if isinstance(value, dict):
                    yield SourceRow(line, value, len(data))
                else:
                    yield RowProblem(line, row, f"the line is {_kind_of(value)}, not an object")


class _ArrayText:
    """A window over the text of a JSON array; knows the line of its position."""

    def __init__(self, file: io.TextIOWrapper) -> None:
        self._file = file
        self._is_ended = False
        self.buffer = ""
        self.position = 0
        self.line = 1

    def refill(self) -> bool:
        """Drop what was read and append more; False at the end of the file."""
        if self._is_ended:
            return False
        kept = self.buffer[self.position :]
        # Growing with what is kept makes the retries of one long row linear in all.
        more = self._file.read(max(_CHUNK_CHARACTERS, len(kept)))
        self._is_ended = not more
        self.buffer, self.position = kept + more, 0
        return bool(more)

    def advance(self, position: int) -> None:
        self.line += self.buffer.count("\n", self.position, position)
        self.position = position

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        while True:
            match = _SPACE.match(self.buffer, self.position)
            self.advance(match.end() if match else self.position)
            if self.position < len(self.buffer):
                return self.buffer[self.position]
            if not self.refill():
                return ""

    def take_value(self) -> Any:
        """Decode the value here. Raises ValueError or RecursionError; the position then stays."""
        while True:
            remaining = len(self.buffer) - self.position
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.position)
            except json.JSONDecodeError:
                # Either cut off by the window or wrong; only more text can tell.
                if remaining > MAX_ROW_BYTES or not self.refill():
                    raise
                continue
            if end == len(self.buffer) and self.refill():
                continue  # a number may go on
            self.advance(end)
            return value


def _read_json_array(path: Path, encoding: str) -> Iterator[SourceRow | RowProblem]:
    with path.open(encoding=encoding, newline="") as file:
        text = _ArrayText(file)
        text.peek()
        text.advance(text.position + 1)  # the "[" by which the kind was detected
        row = 0
        if text.peek() == "]":
            text.advance(text.position + 1)
        else:
            while True:
                row += 1
                text.peek()
                line = text.line
                before = text.position
                item = _take_item(text, row, line)
                yield item
                if isinstance(item, RowProblem) and text.position == before and text.line == line:
                    return  # nothing after a syntax error can be trusted
                separator = text.peek()
                if separator not in {",", "]"}:
                    found = f"'{separator}'" if separator else "the end of the file"
                    yield RowProblem(text.line, row, f"not valid JSON: expected ',' or ']' but found {found}")
                    return
                text.advance(text.position + 1)
                if separator == "]":
                    break
        if rest := text.peek():
            yield RowProblem(text.line, row, f"not valid JSON: '{rest}' follows the end of the array")


def _take_item(text: _ArrayText, row: int, line: int) -> SourceRow | RowProblem:
    start = text.position
    try:
        value = text.take_value()
    except RecursionError:
        return RowProblem(line, row, _TOO_DEEP)
    except json.JSONDecodeError as error:
        if len(text.buffer) - text.position > MAX_ROW_BYTES:
            return RowProblem(line, row, f"not valid JSON, or {_TOO_LONG}")
        bad_line = line + text.buffer.count("\n", text.position, error.pos)
        return RowProblem(bad_line, row, f"not valid JSON: {error.msg}")
    except ValueError as error:
        return RowProblem(line, row, _explain(error))
    if not isinstance(value, dict):
        return RowProblem(line, row, f"the item is {_kind_of(value)}, not an object")
    return SourceRow(line, value, max(0, text.position - start))


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def _read_csv(path: Path, encoding: str) -> Iterator[SourceRow | RowProblem]:
    header, types = _csv_columns(path, encoding)
    records = _csv_records(path, encoding)
    next(records)
    for row, record in enumerate(records, start=1):
        if isinstance(record, RowProblem):
            yield record
            return
        line, cells = record
        if len(cells) != len(header):
            yield RowProblem(line, row, f"{len(cells)} cells, but the header has {len(header)} columns")
            continue
        value = {name: _typed(cell, types[name]) for name, cell in zip(header, cells, strict=True)}
        yield SourceRow(line, value, sum(map(len, cells)))


def _csv_columns(path: Path, encoding: str) -> tuple[list[str], dict[str, str]]:
    """The header and the type of each column, after one pass over the cells.

    A column becomes integer or number only when each of its cells could be written back
    exactly as it stood: "007", "0.50" and "true" stay text, and so does "5" beside "2.5", which
    would come back as "5.0" and no longer be the answer that a reward compares with.
    """
    records = _csv_records(path, encoding)
    first = next(records)
    if isinstance(first, RowProblem):
        raise UnreadableFile("bad_header", f"The header cannot be read: {first.reason}.", line=first.line)
    header = [name.strip() for name in first[1]]
    for position, name in enumerate(header, start=1):
        if not name:
            raise UnreadableFile("bad_header", f"Column {position} of the header has no name.", line=first[0])
        if header.index(name) != position - 1:
            raise UnreadableFile("bad_header", f"The header names the column '{name}' twice.", line=first[0])
    candidates = {name: {"integer", "number"} for name in header}
    is_filled = dict.fromkeys(header, False)
    for record in records:
        if isinstance(record, RowProblem):
            break
        if len(record[1]) != len(header):
            continue
        for name, cell in zip(header, record[1], strict=True):
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


def _reads_as(cell: str, kind: str) -> bool:
    if kind == "integer":
        return _INTEGER.fullmatch(cell) is not None
    try:
        number = float(cell)
    except ValueError:
        return False
    return math.isfinite(number) and repr(number) == cell


def _typed(cell: str, kind: str) -> Any:
    if kind == "text":
        return cell
    if not cell:
        return None
    return int(cell) if kind == "integer" else float(cell)


def _bounded_lines(file: io.TextIOWrapper) -> Iterator[str]:
    while line := file.readline(MAX_ROW_BYTES + 1):
        if len(line) > MAX_ROW_BYTES:
            raise csv.Error(_TOO_LONG)
        yield line


def _csv_records(path: Path, encoding: str) -> Iterator[tuple[int, list[str]] | RowProblem]:
    """(line, cells) of each record that is not blank; the first is the header."""
    csv.field_size_limit(MAX_ROW_BYTES)
    with path.open(encoding=encoding, newline="") as file:
        lines = _bounded_lines(file)
        try:
            delimiter = _delimiter_of(next(lines, ""))
        except csv.Error as error:
            yield RowProblem(1, 0, str(error))
            return
        file.seek(0)
        reader = csv.reader(_bounded_lines(file), delimiter=delimiter, strict=True)
        row = 0
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield RowProblem(line, row, f"not valid CSV: {error}")
                return
            if cells:
                yield line, cells
                row += 1


def _delimiter_of(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",\t;", key=bare.count)
