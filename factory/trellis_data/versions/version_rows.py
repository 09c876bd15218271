"""Reading rows of a version: pages by position, filter and search with a bound, everything in a stream.

A page costs the version's list of chunks (about 75 bytes a chunk, held after the first page) and
the one or two row groups of 1,024 rows that it lies in, however many rows there are.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field
from trellis_contracts.recipe import DataFormat, Strict

from trellis_data.batching import read_tables
from trellis_data.layout import Batch, Layout
from trellis_data.pipeline.shards import conform
from trellis_data.row_texts import any_in_row, texts_of
from trellis_data.versions.objects import ROWS
from trellis_data.versions.records import ChunkRef, Split, StoreProblem, Tree, Version
from trellis_data.versions.store import Store


class Condition(Strict):
    """What a column's value has to be."""

    column: str
    operator: Literal["eq", "ne", "lt", "le", "gt", "ge", "contains", "is_null", "not_null"]
    value: str | int | float | bool | None = None


class Search(Strict):
    """Which rows are looked for: all conditions hold, and one of the row's texts contains ``text``."""

    conditions: list[Condition] = Field(default_factory=list, max_length=20)
    #: Upper and lower case are the same.
    text: str | None = Field(default=None, max_length=1000)


class Found(NamedTuple):
    """Rows that fit, and where to go on."""

    table: pa.Table
    positions: list[int]
    #: Position to go on from; None at the end of the split.
    cursor: int | None
    #: Rows that were looked at.
    looked_at: int


def read_rows(store: Store, version: Version, split: str, offset: int, limit: int) -> pa.Table:
    """Read the rows of a split from a position on; fewer at its end."""
    check_page(offset, limit)
    tree = store.tree(version.commit.tree)
    wanted = range(offset, min(offset + limit, _split(tree, split).rows))
    return take_rows(store, tree, split, np.arange(wanted.start, max(wanted.start, wanted.stop)))


def check_page(offset: int, limit: int, *, least: int = 0) -> None:
    """Raise ``StoreProblem`` where no page begins there or is so long."""
    if offset < 0 or limit < least:
        raise StoreProblem(
            "page_unfit",
            f"A page begins at row 0 or later and has {least} rows or more, not {offset} and {limit}.",
        )


def take_rows(store: Store, tree: Tree, split: str, positions: np.ndarray) -> pa.Table:
    """Read the rows at these positions, in their order."""
    chunks, schema = _split(tree, split).chunks, tree.arrow_schema
    ends = np.cumsum([chunk.rows for chunk in chunks])
    tables = [schema.empty_table()]
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    places = np.searchsorted(ends, ordered, side="right")
    for place in np.unique(places):
        start = int(ends[place]) - chunks[place].rows
        tables.append(conform(_pick(store, chunks[place], ordered[places == place] - start), schema))
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_tables(tables).take(pa.array(back))


def stream_rows(store: Store, version: Version, split: str, rows: int = 8192) -> Iterator[pa.Table]:
    """Yield all rows of a split in order, in tables of limited size (``batching``)."""
    tree = store.tree(version.commit.tree)
    schema = tree.arrow_schema
    for chunk in _split(tree, split).chunks:
        with store.objects.rows(chunk.id) as file:
            for table in read_tables(file, rows):
                yield conform(table, schema)


def files_of(store: Store, version: Version) -> dict[str, list[Path]]:
    """Return the Parquet files with the rows of each split, in order, for a pipeline to read.

    They are the store's own: not to be changed. Columns may be in another order than the version's.
    """
    tree = store.tree(version.commit.tree)
    return {
        name: [store.objects.path(chunk.id, ROWS) for chunk in split.chunks]
        for name, split in tree.splits.items()
    }


def find_rows(
    store: Store,
    version: Version,
    split: str,
    search: Search,
    *,
    cursor: int = 0,
    limit: int = 50,
    most_rows: int = 200_000,
    seconds: float = 1.0,
) -> Found:
    """Find the next matching rows; look at no more than ``most_rows`` rows and for about ``seconds``.

    A call that runs out of either says by ``cursor`` where the next one goes on: it may have found
    nothing yet. Raises ``StoreProblem`` for a column that is not there or cannot be compared so.
    """
    check_page(cursor, limit, least=1)
    tree = store.tree(version.commit.tree)
    schema = tree.arrow_schema
    fits = _compile(search, schema)
    found, positions = [schema.empty_table()], list[int]()
    started, looked_at = time.monotonic(), 0
    for start, table in _groups_from(store, _split(tree, split), cursor, schema):
        hits = np.flatnonzero(fits(table))[: limit - len(positions)]
        if len(hits):
            found.append(table.take(pa.array(hits)))
            positions += (hits + start).tolist()
        looked_at += table.num_rows
        is_full = len(positions) >= limit
        if is_full or looked_at >= most_rows or time.monotonic() - started > seconds:
            after = positions[-1] + 1 if is_full else start + table.num_rows
            more = after if after < _split(tree, split).rows else None
            return Found(pa.concat_tables(found), positions, more, looked_at)
    return Found(pa.concat_tables(found), positions, None, looked_at)


def _split(tree: Tree, name: str) -> Split:
    try:
        return tree.splits[name]
    except KeyError:
        known = ", ".join(tree.splits)
        raise StoreProblem("split_unknown", f"There is no split '{name}'; there is {known}.") from None


def _pick(store: Store, chunk: ChunkRef, rows: np.ndarray) -> pa.Table:
    """Read rows of a chunk by position, ascending; only their row groups are read."""
    with store.objects.rows(chunk.id) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        ends = np.cumsum(sizes)
        groups = np.unique(np.searchsorted(ends, rows, side="right"))
        table = file.read_row_groups(groups.tolist())
    starts = np.concatenate([[0], np.cumsum([sizes[group] for group in groups])])
    group_of = np.searchsorted(ends, rows, side="right")
    at = np.searchsorted(groups, group_of)
    before = np.array([int(ends[group]) - sizes[group] for group in group_of])
    return table.take(pa.array(starts[at] + rows - before))


def _groups_from(
    store: Store, split: Split, cursor: int, schema: pa.Schema
) -> Iterator[tuple[int, pa.Table]]:
    start = 0
    for chunk in split.chunks:
        if start + chunk.rows <= cursor:
            start += chunk.rows
            continue
        with store.objects.rows(chunk.id) as file:
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                if start + size > cursor:
                    skip = max(0, cursor - start)
                    yield start + skip, conform(file.read_row_group(group), schema).slice(skip)
                start += size


def _compile(search: Search, schema: pa.Schema) -> Callable[[pa.Table], np.ndarray]:
    for number, condition in enumerate(search.conditions):
        _check(condition, schema, place=f"conditions.{number}")

    def fits(table: pa.Table) -> np.ndarray:
        hits = np.ones(table.num_rows, dtype=bool)
        for condition in search.conditions:
            hits &= pc.fill_null(_holds(condition, table), False).to_numpy()
        if search.text and hits.any():
            hits &= _contains(table, search.text)
        return hits

    return fits


def _check(condition: Condition, schema: pa.Schema, *, place: str) -> None:
    if condition.column not in schema.names:
        names: Sequence[str] = schema.names
        raise StoreProblem(
            "column_unknown",
            f"There is no column '{condition.column}'; there are {', '.join(names[:50])}.",
            field=f"{place}.column",
        )
    try:
        _holds(condition, schema.empty_table())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        kind, asked = schema.field(condition.column).type, f"{condition.operator} {condition.value}"
        raise StoreProblem(
            "condition_unfit",
            f"'{condition.column}' holds {kind}; '{asked[:100]}' does not fit.",
            field=f"{place}.value",
        ) from None


def _holds(condition: Condition, table: pa.Table) -> Any:
    column = table.column(condition.column)
    if condition.operator == "is_null":
        return column.is_null()
    if condition.operator == "not_null":
        return column.is_valid()
    if condition.operator == "contains":
        return pc.match_substring(column, str(condition.value), ignore_case=True)
    compare = {
        "eq": pc.equal,
        "ne": pc.not_equal,
        "lt": pc.less,
        "le": pc.less_equal,
        "gt": pc.greater,
        "ge": pc.greater_equal,
    }[condition.operator]
    is_number = isinstance(condition.value, int | float) and not isinstance(condition.value, bool)
    value = pa.scalar(condition.value) if is_number else pa.scalar(condition.value).cast(column.type)
    return compare(column, value)


def _contains(table: pa.Table, text: str) -> np.ndarray:
    batch = Batch(table, Layout(DataFormat.UNKNOWN))
    frame = texts_of(batch)
    lowered = frame.select(pl.col("text").str.to_lowercase().str.contains(text.lower(), literal=True))
    return any_in_row(batch, frame, lowered["text"])
