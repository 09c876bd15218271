"""Datasets on disk: typed Parquet in small row groups, so that a page of rows costs one or two of them."""

import base64
import math
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_data.reading.blocks import SourceRow
from trellis_data.reading.columns import CONVERSION_ERRORS, ColumnTypes, Misfit, explain_misfit
from trellis_data.reading.conform import storable, storable_type
from trellis_data.reading.problems import MAX_LEAF_COLUMNS, RowProblem, UnreadableFile

from trellis_api.datasets.intake.problems import MAX_PROBLEMS, BadRows

#: A row group ends at whichever comes first.
_GROUP_ROWS = 1024
_GROUP_BYTES = 8 * 1024 * 1024
_MAX_ROWS = 1_000_000_000

Source = Callable[[], Iterator[SourceRow | RowProblem]]


class _ProblemList:
    """Problems in the order of the file; raises when there are enough."""

    def __init__(self) -> None:
        self.items: list[RowProblem] = []

    def add(self, problem: RowProblem) -> None:
        self.items.append(problem)
        if len(self.items) >= MAX_PROBLEMS:
            raise BadRows(self.items, is_complete=False)

    def add_misfits(self, misfits: list[Misfit], batch: list[tuple[int, SourceRow]]) -> None:
        numbers = {id(row): number for number, row in batch} if misfits else {}
        for row, column, reason, code in misfits:
            if code == "too_many_columns":
                raise UnreadableFile(code, f"Row {numbers[id(row)]}: {reason}.")
            self.add(RowProblem(row.line, numbers[id(row)], reason, column))

    def raise_if_any(self) -> None:
        if self.items:
            raise BadRows(sorted(self.items, key=lambda item: item.row), is_complete=True)


def write_rows(source: Source, destination: Path) -> pa.Schema:
    """Write the rows of a text file as Parquet; return the schema.

    The types are those of all rows together. They are learnt while writing; only when a later
    batch widens them is the file read a second time. Raises BadRows and UnreadableFile.
    """
    types = ColumnTypes()
    problems = _ProblemList()
    writer: pq.ParquetWriter | None = None
    is_final = True
    try:
        for batch in _batches(source(), problems):
            before = types.struct
            pieces, misfits = types.admit([row for _, row in batch])
            problems.add_misfits(misfits, batch)
            if problems.items or not is_final:
                continue
            if writer is None and types.struct.num_fields:
                writer = _open_writer(destination, types.struct)
            elif not before.equals(types.struct):
                is_final = False
            if writer is None or len(pieces) != 1:
                is_final = False  # no row has a key so far, or a row fits only the types before this batch
            elif is_final:
                _write_array(writer, pieces[0].array)
    finally:
        if writer is not None:
            writer.close()
    problems.raise_if_any()
    if not types.struct.num_fields:
        raise UnreadableFile("dataset_empty", "The file has no rows with values.")
    if not is_final:
        _write_again(source, destination, types.struct)
    return pa.schema(list(storable_type(types.struct)))


def _write_again(source: Source, destination: Path, struct: pa.StructType) -> None:
    problems = _ProblemList()
    with _open_writer(destination, struct) as writer:
        for batch in _batches(source(), problems):
            try:
                array = pa.array([row.value for _, row in batch], type=struct)
            except CONVERSION_ERRORS:
                for number, row in batch:
                    if misfit := explain_misfit(row.value, struct):
                        problems.add(RowProblem(row.line, number, misfit[1], misfit[0]))
                if not problems.items:
                    raise
            else:
                _write_array(writer, array)
    problems.raise_if_any()


def _batches(
    rows: Iterator[SourceRow | RowProblem], problems: _ProblemList
) -> Iterator[list[tuple[int, SourceRow]]]:
    batch: list[tuple[int, SourceRow]] = []
    size = 0
    for number, row in enumerate(rows, start=1):
        if isinstance(row, RowProblem):
            problems.add(row)
            continue
        batch.append((number, row))
        size += row.size
        if len(batch) >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _open_writer(destination: Path, struct: pa.StructType) -> pq.ParquetWriter:
    return pq.ParquetWriter(destination, pa.schema(list(storable_type(struct))), compression="zstd")


def _write_array(writer: pq.ParquetWriter, array: pa.StructArray) -> None:
    batch = pa.RecordBatch.from_struct_array(storable(array))
    writer.write_table(pa.Table.from_batches([batch]))


def copy_parquet(path: Path, destination: Path) -> pa.Schema:
    """Write an uploaded Parquet file again in our row groups; return the schema. Raises UnreadableFile."""
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow.remove_metadata()
            _check_parquet(file, schema)
            with pq.ParquetWriter(destination, schema, compression="zstd") as writer:
                row_count = 0
                for batch in file.iter_batches(batch_size=_GROUP_ROWS):
                    batch.validate(full=True)
                    writer.write_table(pa.Table.from_batches([batch]).cast(schema))
                    row_count += batch.num_rows
            if row_count != file.metadata.num_rows:
                claimed = file.metadata.num_rows
                raise UnreadableFile("file_damaged", f"The file claims {claimed} rows but holds {row_count}.")
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault
        raise UnreadableFile(
            "file_damaged", f"The Parquet file cannot be read: {str(error)[:300]}"
        ) from error
    return schema


def _check_parquet(file: pq.ParquetFile, schema: pa.Schema) -> None:
    row_count = file.metadata.num_rows
    if not row_count:
        raise UnreadableFile("dataset_empty", "The file has no rows.")
    if row_count > _MAX_ROWS:
        raise UnreadableFile("too_many_rows", f"The file claims {row_count} rows; the limit is {_MAX_ROWS}.")
    if file.metadata.num_columns > MAX_LEAF_COLUMNS:
        raise UnreadableFile("too_many_columns", f"The file has more than {MAX_LEAF_COLUMNS} columns.")
    for name in schema.names:
        if not name or "\x00" in name or schema.names.count(name) > 1:
            raise UnreadableFile("bad_header", f"The column name {name!r} is empty, repeated or not text.")


def read_page(path: Path, *, offset: int, limit: int) -> list[dict[str, Any]]:
    """Rows ``offset`` to ``offset + limit`` as JSON values; only the row groups that hold them are read."""
    rows: list[dict[str, Any]] = []
    with pq.ParquetFile(path) as file:
        start = 0
        for group in range(file.metadata.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if start + count > offset and start < offset + limit:
                first = max(0, offset - start)
                table = file.read_row_group(group).slice(first, offset + limit - start - first)
                rows.extend(to_json(row) for row in table.to_pylist())
            start += count
            if start >= offset + limit:
                break
    return rows


def to_json(value: Any) -> Any:
    """A Parquet value as JSON has it: times as ISO text, bytes as base64, NaN as text."""
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value) if isinstance(value, Decimal) else value
