"""Rows as a page shows them: it is bounded in characters, too, and of what is very long it has the beginning.

Texts end in a mark then, lists simply earlier; every column of every row stays. Which values were cut is
said beside the rows.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from trellis_data.json_rows import rows_as_json

from trellis_api.core.texts import CUT_MARK, shorten
from trellis_api.datasets.schemas import CutValue

#: Of all rows of a page together. A row may take what those before it have left.
MOST_CHARACTERS = 4_000_000
#: Texts are not cut shorter than this, so that names and roles stay what they are.
_LEAST_CHARACTERS = 200
#: What counts for a number, a truth value or nothing at all.
_OTHER_CHARACTERS = 8


class PageRows:
    """The rows of a page, added in their order, and which values are not whole."""

    def __init__(self, count: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self.cut: list[CutValue] = []
        self._left, self._room = count, MOST_CHARACTERS

    def add(self, tables: Iterable[pa.Table]) -> "PageRows":
        """Add the next rows; those of one table at a time are held as they are."""
        for table in tables:
            if table.nbytes <= self._room // max(1, self._left) * table.num_rows:
                # No text has more characters than bytes: all of them fit.
                self._take(rows_as_json(table), table.nbytes)
                continue
            for place in range(table.num_rows):
                self._add_long(rows_as_json(table.slice(place, 1))[0])
        return self

    def _take(self, rows: list[dict[str, Any]], characters: int) -> None:
        self.rows += rows
        self._left -= len(rows)
        self._room = max(0, self._room - characters)

    def _add_long(self, row: dict[str, Any]) -> None:
        share = self._room // max(1, self._left)
        sizes = sorted(_sizes(row))
        if sum(sizes) <= share:
            self._take([row], sum(sizes))
            return
        cutter = _Cutter(share, _level(sizes, share))
        shown = {}
        for column, value in row.items():
            shown[column] = cutter.cut(value)
            if cutter.has_cut:
                self.cut.append(CutValue(row=len(self.rows), column=column))
                cutter.has_cut = False
        self._take([shown], share)


class _Cutter:
    """Cuts the values of one row, which share their room."""

    def __init__(self, room: int, longest: int) -> None:
        self._room, self._longest = room, max(longest, _LEAST_CHARACTERS)
        self.has_cut = False

    def cut(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.cut(item) for key, item in value.items()}
        if isinstance(value, list):
            return self._cut_list(value)
        if not isinstance(value, str):
            self._room -= _OTHER_CHARACTERS
            return value
        longest = self._longest if self._room > 0 else len(CUT_MARK)
        self.has_cut = self.has_cut or len(value) > longest
        shown = shorten(value, limit=longest)
        self._room -= len(shown)
        return shown

    def _cut_list(self, items: list[Any]) -> list[Any]:
        shown = []
        for item in items:
            if self._room <= 0:
                self.has_cut = True
                break
            shown.append(self.cut(item))
        return shown


def _sizes(value: Any) -> Iterator[int]:
    """Yield the number of characters of every text and number in a value."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _sizes(item)
    else:
        yield len(value) if isinstance(value, str) else _OTHER_CHARACTERS


def _level(sizes: list[int], room: int) -> int:
    """Return the longest length at which all values fit, shorter ones uncut; ``sizes`` are sorted."""
    for place, size in enumerate(sizes):
        longest = room // (len(sizes) - place)
        if size > longest:
            return longest
        room -= size
    return sizes[-1] if sizes else 0
