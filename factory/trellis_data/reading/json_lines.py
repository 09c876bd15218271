"""JSON Lines in blocks: fast where every line is as it should be, line by line where one is not."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import orjson

from trellis_data.reading.blocks import BLOCK_ROWS, Block, SourceRow
from trellis_data.reading.json_values import TOO_LONG, Unreadable, decode_line
from trellis_data.reading.problems import MAX_RAW_CHARACTERS, MAX_ROW_BYTES, RowProblem, shorten

_READ_BYTES = 2 * 1024 * 1024
#: Rows, and the number of the next line and of the next row.
_Lines = list[tuple[int, bytes]]


def read_json_lines(stream: BinaryIO, *, exactly: bool = False) -> Iterator[Block]:
    """Read the rows of UTF-8 text with one object per line, one block in memory at a time.

    ``exactly`` reads numbers as they stand; without it integers beyond 64 bits come as decimal numbers, and
    a block that holds such offers ``read_exactly``.
    """
    row = 1
    for lines, problem in _blocks_of_lines(stream):
        if lines:
            block = _read(lines, row) if exactly else _read_fast(lines, row)
            row += block.row_count
            if block.row_count:
                yield block
        if problem is not None:
            line, raw = problem
            yield Block(row, problems=[RowProblem(line, row, TOO_LONG, code="too_long", raw=raw)])
            row += 1


def _blocks_of_lines(stream: BinaryIO) -> Iterator[tuple[_Lines, tuple[int, str] | None]]:
    """Yield lines with their numbers, followed by the position and beginning of a line that is too long."""
    rest, number = b"", 1
    while True:
        chunk = stream.read(_READ_BYTES)
        data = rest + chunk
        cut = data.rfind(b"\n") + 1 if chunk else len(data)
        lines = data[:cut].split(b"\n")
        if not lines[-1]:
            lines.pop()  # after the last line's end, or where no line ends
        rest = data[cut:]
        for start in range(0, len(lines), BLOCK_ROWS):
            part = lines[start : start + BLOCK_ROWS]
            yield list(enumerate(part, start=number + start)), None
        number += len(lines)
        if not chunk:
            return
        if len(rest) > MAX_ROW_BYTES:
            yield [], (number, shorten(rest[: 4 * MAX_RAW_CHARACTERS]))
            number += 1
            rest = _skip_line(stream)


def _skip_line(stream: BinaryIO) -> bytes:
    """Read on to the end of the line; what follows it in the last chunk that was read."""
    while chunk := stream.read(_READ_BYTES):
        head, end, rest = chunk.partition(b"\n")
        if end:
            return rest
        del head
    return b""


def _read_fast(lines: _Lines, first_row: int) -> Block:
    values: list[Any] | None = None
    filled = [(number, data) for number, data in lines if data and not data.isspace()]
    with _without_cycles():
        try:
            values = [orjson.loads(data) for _, data in filled]
        except orjson.JSONDecodeError:
            values = None
        if values is None or not _is_whole([data for _, data in filled], values):
            return _read(filled, first_row)
    rows = [SourceRow(number, value, len(data)) for (number, data), value in zip(filled, values, strict=True)]
    return Block(first_row, rows, read_exactly=lambda: _read(filled, first_row))


@contextmanager
def _without_cycles() -> Iterator[None]:
    """Disable garbage collection: parsed JSON has no cycles, and looking for them would be slow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_whole(lines: list[bytes], values: list[Any]) -> bool:
    """Return whether all lines are objects, none too long and none with a repeated key.

    The parser keeps the last of two values under one key. A lost pair takes its quotation marks along, so
    that written again the values have fewer; a mark written as an escape would make up for one.
    """
    if not values:
        return True
    if set(map(type, values)) != {dict} or max(map(len, lines)) > MAX_ROW_BYTES:
        return False
    try:
        written = orjson.dumps(values)
    except orjson.JSONEncodeError:
        return False  # it reads what is nested deeper than it writes
    if sum(data.count(b'"') for data in lines) != written.count(b'"'):
        return False
    return not any(b"\\u0022" in data for data in lines)


def _read(lines: _Lines, first_row: int) -> Block:
    """Parse line by line, and record the problems of lines that are not rows."""
    block = Block(first_row)
    row = first_row
    for number, data in lines:
        if not data or data.isspace():
            continue
        found = Unreadable("too_long", TOO_LONG) if len(data) > MAX_ROW_BYTES else decode_line(data)
        if isinstance(found, Unreadable):
            problem = RowProblem(number, row, found.reason, code=found.code, raw=shorten(data))
            block.problems.append(problem)
        else:
            block.rows.append(SourceRow(number, found, len(data)))
        row += 1
    return block
