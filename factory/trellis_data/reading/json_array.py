"""The objects of a JSON array, one at a time, through a window over its text."""

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from trellis_data.reading.blocks import SourceRow
from trellis_data.reading.json_values import DECODER, TOO_LONG, explain, name_kind
from trellis_data.reading.problems import MAX_ROW_BYTES, RowProblem, shorten

_CHUNK_CHARACTERS = 1024 * 1024
_SPACE = re.compile(r"[ \t\r\n]*")
#: An error this near to the end of the window may be the window's.
_CUT_CHARACTERS = 64
#: Kept while the next item is looked for: its beginning may be cut off by the window.
_OVERLAP = 1024
_FIRST_KEY = re.compile(r'\{[ \t\r\n]*("(?:[^"\\]|\\.)*")')
#: What holds none of this is no row, and nothing is lost with it.
_SAYS = re.compile(r'[\w"]')
_SURROGATE = re.compile("[\ud800-\udfff]")


class _ArrayText:
    """A window over the text of a JSON array; knows the line of its position."""

    def __init__(self, file: io.TextIOWrapper) -> None:
        self._file = file
        self._is_ended = False
        self.buffer = ""
        self.position = 0
        self.line = 1
        #: How items begin, as far as the first one showed: finds the next after one that is no JSON.
        self.item_start = re.compile(r"\{")

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
        """Move on within the window."""
        self.line += self.buffer.count("\n", self.position, position)
        self.position = position

    def peek(self) -> str:
        """Return the next character that is not white space, or "" at the end."""
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
                value, end = DECODER.raw_decode(self.buffer, self.position)
            except json.JSONDecodeError as error:
                # Near the end either cut off by the window or wrong; only more text can tell.
                is_wrong = error.pos < len(self.buffer) - _CUT_CHARACTERS and "Unterminated" not in error.msg
                if is_wrong or remaining > MAX_ROW_BYTES or not self.refill():
                    raise
                continue
            if end == len(self.buffer) and self.refill():
                continue  # a number may go on
            self.advance(end)
            return value

    def note_first_item(self) -> None:
        """Learn from how the first row begins where others do: objects inside of rows begin otherwise."""
        before = self.buffer[max(0, self.position - _OVERLAP) : self.position]
        indent = before[before.rfind("\n") :] if "\n" in before else ""
        lead = re.escape(indent) if not indent.strip() else ""
        key = _FIRST_KEY.match(self.buffer, self.position)
        named = r"[ \t\r\n]*" + re.escape(key[1]) if key else ""
        self.item_start = re.compile(lead + r"\{" + named)

    def skip_item(self) -> str:
        """Go to where the next object begins, or to the end; the beginning of what was passed over."""
        skipped, start = "", self.position + 1
        while True:
            match = self.item_start.search(self.buffer, start)
            end = self.buffer.index("{", match.start()) if match else len(self.buffer) - _OVERLAP
            end = max(self.position, end)
            if len(skipped) < _CHUNK_CHARACTERS:
                skipped += self.buffer[self.position : end]
            self.advance(end)
            if match:
                return skipped
            start = 0 if start < end else start - end
            if not self.refill():
                skipped += self.buffer[self.position :]
                self.advance(len(self.buffer))
                return skipped


def read_json_array(stream: BinaryIO) -> Iterator[SourceRow | RowProblem]:
    """Read the rows of a UTF-8 JSON array of objects, with problems in the place of bad ones.

    After what is no JSON, reading goes on where the next row seems to begin.
    """
    with io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline="") as file:
        text = _ArrayText(file)
        text.peek()
        text.advance(text.position + 1)  # the "[" by which the kind was detected
        row, is_item = 0, text.peek() != "]"
        while is_item or text.peek():
            if is_item:
                row += 1
                yield (item := _take_item(text, row))
                if isinstance(item, RowProblem) and text.peek() in ("", "{"):
                    is_item = text.peek() == "{"
                    continue  # what is no JSON was passed over, up to here
            found = text.peek()
            if found == ",":
                text.advance(text.position + 1)
                text.peek()
                is_item = True
                continue
            if found == "]":
                text.advance(text.position + 1)
                if not text.peek():
                    return
            passed = _pass_over(text, row + 1, is_after_end=found == "]")
            row += passed.is_row
            yield passed
            is_item = text.peek() == "{"


def _pass_over(text: _ArrayText, row: int, *, is_after_end: bool) -> RowProblem:
    """Report a value that stands where a separator, or nothing, should, and skip to the next item."""
    found = text.peek()
    if is_after_end:
        reason = f"not valid JSON: '{found}' follows the end of the array"
    else:
        shown = f"'{found}'" if found else "the end of the file"
        reason = f"not valid JSON: expected ',' or ']' but found {shown}"
    line = text.line
    raw = "" if found in ("", "{") else shorten(text.skip_item())
    is_row = _SAYS.search(raw) is not None
    return RowProblem(line, row, reason, code="not_json", raw=raw, is_row=is_row)


def _take_item(text: _ArrayText, row: int) -> SourceRow | RowProblem:
    line, start = text.line, text.position
    if row == 1:
        text.note_first_item()
    try:
        value = text.take_value()
    except (ValueError, RecursionError) as error:
        return _skip_bad_item(text, row, error)
    if not isinstance(value, dict):
        reason = f"the item is {name_kind(value)}, not an object"
        raw = shorten(json.dumps(value, ensure_ascii=False)[:8000])
        return RowProblem(line, row, reason, code="not_an_object", raw=raw)
    size = max(0, text.position - start)
    item = text.buffer[start : text.position] if start < text.position else ""
    if not item.isascii() and _SURROGATE.search(item):
        reason = "the item is not in the encoding of the file"
        return RowProblem(line, row, reason, code="bad_encoding", raw=shorten(item))
    return SourceRow(line, value, size)


def _skip_bad_item(text: _ArrayText, row: int, error: ValueError | RecursionError) -> RowProblem:
    line, (code, reason) = text.line, explain(error)
    if isinstance(error, json.JSONDecodeError):
        if len(text.buffer) - text.position > MAX_ROW_BYTES:
            code, reason = "too_long", f"not valid JSON, or {TOO_LONG}"
        else:
            line += text.buffer.count("\n", text.position, error.pos)
            reason = f"not valid JSON: {error.msg}"
    return RowProblem(line, row, reason, code=code, raw=shorten(text.skip_item()))
