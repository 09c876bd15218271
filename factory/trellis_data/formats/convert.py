"""Rows of one format as rows of another: in columns where rows are common, one by one where they are odd."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from trellis_contracts.recipe import DataFormat
from trellis_recipes.data.row_values import BadRow

from trellis_data.formats.columnwise import convert_columns
from trellis_data.formats.detection import find_column
from trellis_data.formats.rowwise import Extraction, RowConverter
from trellis_data.formats.shapes import EXTRA, MEANS, Reading, Shape, written_schema
from trellis_data.formats.turns import is_wide

#: Columns of the source that the target holds whole, by role; others stay beside the new ones.
_CONSUMED: dict[Shape, tuple[str, ...]] = {
    Shape.ALPACA: ("prompt", "answer", "system"),
    Shape.PROMPT_ANSWER: ("prompt", "answer", "system"),
    Shape.MESSAGES: ("messages",),
    Shape.VERL_SFT: ("messages",),
    Shape.SHAREGPT: ("messages", "system"),
    Shape.PREFERENCE: ("prompt", "chosen", "system"),
    Shape.UNPAIRED_PREFERENCE: ("prompt", "completion", "system"),
    Shape.VERL_RL: ("prompt",),
    Shape.TEXT: ("text",),
}
#: Columns of verl's that rows keep when they leave its format, and that count when they come back.
_VERL_OWN = ("data_source", "ability", "reward_model", "extra_info")
_LABELLED = Shape.UNPAIRED_PREFERENCE
_MAX_SENTENCES = 1000


@dataclass(frozen=True)
class Unconvertible:
    """Why a row cannot be brought into a format."""

    code: str
    message: str


@dataclass(frozen=True)
class Converted:
    """Rows in the new format, where each comes from, and those that have no place in it."""

    table: pa.Table
    #: For each row of ``table`` its row in the source.
    sources: np.ndarray
    problems: dict[int, Unconvertible] = field(default_factory=dict)


class Converter:
    """Brings tables of one schema from one format into another."""

    def __init__(
        self, schema: pa.Schema, reading: Reading, target: Shape, *, extraction: Extraction | None = None
    ) -> None:
        """Prepare a conversion; ``extraction``: how final answers are found, by default only for rewards."""
        self._reading = reading
        self._target = target
        self._extraction: Extraction = extraction or ("auto" if target is Shape.VERL_RL else "whole")
        wide = "tools" in schema.names or any(is_wide(each.type) for each in schema)
        has_solution = self._extraction != "whole"
        self._written = written_schema(target, is_wide=wide, has_solution=has_solution)
        self._rowwise = RowConverter(reading, target, self._extraction)
        consumed = _consumed_columns(schema, reading, target)
        theirs = [name for name in _VERL_OWN if target is Shape.VERL_RL and name in schema.names]
        self._made = [each for each in self._written if each.name not in theirs]
        made = {each.name for each in self._made}
        kept = [name for name in schema.names if name not in consumed]
        #: Name in the source → name beside the new columns.
        self._kept = {name: f"source_{name}" if name in made else name for name in kept}
        fields = [schema.field(name).with_name(new) for name, new in self._kept.items()]
        self.schema = pa.schema([*self._made, *fields])

    def convert(self, table: pa.Table) -> Converted:
        """Convert the rows of a table; report those that cannot be represented in the target."""
        in_columns = convert_columns(table, self._reading, self._target, self._written, self._extraction)
        size = table.num_rows
        columns, sure = in_columns if in_columns else (None, np.zeros(size, bool))
        made, sources = self._common(columns, sure)
        odd = np.flatnonzero(~sure)
        problems: dict[int, Unconvertible] = {}
        if len(odd):
            rows, places, problems = self._one_by_one(table, odd)
            made = pa.concat_tables([made, rows])
            sources = np.concatenate([sources, places])
            order = np.argsort(sources, kind="stable")
            made, sources = made.take(pa.array(order)), sources[order]
        kept = table.select(list(self._kept))
        if len(sources) != size or len(odd) or (np.diff(sources) != 1).any():
            kept = kept.take(pa.array(sources))
        whole = [made.column(each.name) for each in self._made] + kept.columns
        return Converted(pa.table(whole, schema=self.schema), sources, problems)

    def _common(self, columns: dict[str, pa.Array] | None, sure: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        if columns is None:
            return self._written.empty_table(), np.zeros(0, np.int64)
        sources = np.flatnonzero(sure)
        if self._target is Shape.UNPAIRED_PREFERENCE and "rejected" in columns:
            columns = _two_rows_each(columns)
            sources, sure = np.repeat(sources, 2), np.repeat(sure, 2)
        table = pa.table([columns[each.name] for each in self._written], schema=self._written)
        return (table if sure.all() else table.filter(pa.array(sure))), sources

    def _one_by_one(
        self, table: pa.Table, odd: np.ndarray
    ) -> tuple[pa.Table, np.ndarray, dict[int, Unconvertible]]:
        rows = table.take(pa.array(odd)).to_pylist()
        made: list[dict[str, object]] = []
        places: list[int] = []
        problems: dict[int, Unconvertible] = {}
        for index, row in zip(odd.tolist(), rows, strict=True):
            try:
                found = self._rowwise.convert(row)
            except BadRow as error:
                problems[index] = Unconvertible(error.code, str(error)[:_MAX_SENTENCES])
                continue
            made += found
            places += [index] * len(found)
        return pa.Table.from_pylist(made, schema=self._written), np.array(places, np.int64), problems


def _two_rows_each(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Turn every pair into two rows: the chosen answer and then the rejected one."""
    size = len(columns["prompt"])
    order = pa.array(np.arange(2 * size).reshape(2, size).T.ravel())
    answers = pa.concat_arrays([columns["completion"], columns["rejected"]])
    return {
        "prompt": columns["prompt"].take(pa.array(np.repeat(np.arange(size), 2))),
        "completion": answers.take(order),
        "label": pa.array(np.tile([True, False], size)),
    }


def _consumed_columns(schema: pa.Schema, reading: Reading, target: Shape) -> set[str]:
    """Return the source's columns whose content is completely in the new ones."""
    if target is Shape.TEXT:
        return set()  # a conversation cannot be told from its texts
    roles = list(_CONSUMED[reading.shape])
    if reading.shape is Shape.PREFERENCE and target in (Shape.PREFERENCE, _LABELLED):
        roles.append("rejected")
    if reading.shape is _LABELLED and target is _LABELLED:
        roles.append("label")
    found = {find_column(schema, reading, role) for role in roles}
    if MEANS[reading.shape] is DataFormat.UNKNOWN or reading.shape is Shape.VERL_RL:
        found.add(EXTRA)
    # What an earlier conversion left beside the messages, and the target has a place for.
    found.add({Shape.ALPACA: "input", Shape.PREFERENCE: "rejected", _LABELLED: "label"}.get(target))
    return {name for name in found if name}
