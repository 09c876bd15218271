"""Rows of a training source: some Parquet files, read as if they were one.

The files are chunks of a version of a dataset, which versions share. So they may name the same columns in
another order, and a column that has no value in a file has no type there.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.spec import DataSource


class RowGroup(NamedTuple):
    """Rows of a source that are stored together."""

    path: str
    #: Number of the group in its file.
    number: int
    #: Position of its first row in the source.
    first: int
    rows: int


def list_groups(source: DataSource) -> list[RowGroup]:
    """List all groups in the order of the rows."""
    groups, first = [], 0
    for path in source.paths:
        metadata = pq.read_metadata(path)
        for number in range(metadata.num_row_groups):
            rows = metadata.row_group(number).num_rows
            groups.append(RowGroup(path, number, first, rows))
            first += rows
    return groups


def read_rows(
    source: DataSource, start: int, stop: int, batch_rows: int
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield rows ``start`` to ``stop`` in batches, each with the position of its first row.

    All rows have the columns of all files, one that a file lacks without a value.
    """
    names = unite_schemas(source).names
    for path, groups in _by_file(list_groups(source), start, stop):
        first = groups[0].first
        with pq.ParquetFile(path) as file:
            numbers = [group.number for group in groups]
            for batch in file.iter_batches(batch_size=batch_rows, row_groups=numbers):
                begin, end = max(start - first, 0), min(stop - first, batch.num_rows)
                if begin < end:
                    yield first + begin, _complete(batch.slice(begin, end - begin), names)
                first += batch.num_rows


def take_rows(source: DataSource, positions: Sequence[int]) -> list[dict[str, Any]]:
    """Read the rows at these positions (ascending), with one row group in memory at a time."""
    names = unite_schemas(source).names
    found: list[dict[str, Any]] = []
    for group in list_groups(source):
        wanted = [each - group.first for each in positions if 0 <= each - group.first < group.rows]
        if wanted:
            with pq.ParquetFile(group.path) as file:
                found += _complete(file.read_row_group(group.number).take(wanted), names)
    return found


def unite_schemas(source: DataSource) -> pa.Schema:
    """Unify the columns of all files, each with the type it has where it has values."""
    schemas = [pq.read_schema(path).remove_metadata() for path in source.paths]
    return pa.unify_schemas(schemas, promote_options="permissive")


def _by_file(groups: list[RowGroup], start: int, stop: int) -> Iterator[tuple[str, list[RowGroup]]]:
    """Yield the row groups with rows between two positions, grouped by file."""
    held: list[RowGroup] = []
    for group in groups:
        if group.first + group.rows <= start or group.first >= stop:
            continue
        if held and (held[-1].path != group.path or group.number != held[-1].number + 1):
            yield held[0].path, held
            held = []
        held.append(group)
    if held:
        yield held[0].path, held


def _complete(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    if table.schema.names == names:
        return rows
    return [{name: row.get(name) for name in names} for row in rows]
