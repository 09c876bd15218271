"""Rows of Parquet and Arrow files, which have types already."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trellis_data.batching import read_tables
from trellis_data.reading.blocks import BLOCK_ROWS
from trellis_data.reading.column_types import is_list, is_text
from trellis_data.reading.conform import with_items
from trellis_data.reading.kinds import FileKind
from trellis_data.reading.problems import MAX_LEAF_COLUMNS, RowProblem, UnreadableFile

#: A file is a bomb when its rows take more than this many times its size (Parquet: 2 to 100 times, more where
#: a long text is the same in every row) ...
_MAX_RATIO = 1000
#: ... and more than this.
_HARMLESS_BYTES = 1024 * 1024 * 1024
#: What every row counts for besides its values, as a row of nulls has none.
_ROW_BYTES = 64
#: Rows that are copied at once where a value may be repeated.
_REPEATED_ROWS = 64
_DAMAGE = (pa.ArrowException, OSError, ValueError)


def read_typed(path: Path, kind: FileKind) -> Iterator[tuple[int, pa.StructArray, list[RowProblem]]]:
    """Yield rows, the number of the first of them (from 1), and the problems of rows left out.

    Raises UnreadableFile where the file is damaged.
    """
    row = 1
    budget = _Budget(path.stat().st_size)
    try:
        for batch in _parquet_batches(path) if kind is FileKind.PARQUET else _arrow_batches(path):
            kind_of_rows = pa.struct(list(batch.schema))
            # Dictionaries and views repeat a long value for a few bytes: only few of those rows at once.
            step = _REPEATED_ROWS if _repeats(kind_of_rows) else BLOCK_ROWS
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                array, problems = _checked(part, row)
                plain = _plain(array)
                budget.take(plain.nbytes + part.num_rows * _ROW_BYTES)
                yield row, plain, problems
                row += part.num_rows
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault
        raise UnreadableFile(
            "file_damaged",
            f"The {kind} file cannot be read from row {row} on: {str(error)[:300]}",
            row=row,
        ) from error


class _Budget:
    """What a file may unpack to: a bomb repeats a value, or nothing at all, without end."""

    def __init__(self, packed_bytes: int) -> None:
        self._left = self._limit = max(_HARMLESS_BYTES, packed_bytes * _MAX_RATIO)

    def take(self, size: int) -> None:
        """Count rows that take so many bytes."""
        self._left -= size
        if self._left < 0:
            raise UnreadableFile(
                "archive_bomb",
                f"The file unpacks to more than {self._limit // 2**20} MiB, over {_MAX_RATIO} times its "
                "size; split it, or import it as JSON Lines, if that is meant.",
            )


def _repeats(kind: pa.DataType) -> bool:
    """Tell whether values of a type, or values inside them, can stand for one stored value."""
    if isinstance(kind, pa.BaseExtensionType):
        return _repeats(kind.storage_type)
    types = pa.types
    is_own = (
        types.is_dictionary(kind)
        or types.is_run_end_encoded(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )
    return is_own or any(_repeats(kind.field(index).type) for index in range(kind.num_fields))


def _parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
        if file.metadata.num_columns > MAX_LEAF_COLUMNS:
            raise _too_many(file.metadata.num_columns)
        _check_names(file.schema_arrow)
        count = 0
        for table in read_tables(file, BLOCK_ROWS):
            count += table.num_rows
            yield from table.to_batches()
        if count != file.metadata.num_rows:
            claimed = file.metadata.num_rows
            raise UnreadableFile("file_damaged", f"The file declares {claimed} rows but contains {count}.")


def _arrow_batches(path: Path) -> Iterator[pa.RecordBatch]:
    # Not mapped: pages of the file would count as memory that the import takes.
    with pa.OSFile(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        if not is_file:
            with pa.ipc.open_stream(source) as reader:
                _check_names(reader.schema)
                yield from reader
            return
        with pa.ipc.open_file(source) as reader:
            _check_names(reader.schema)
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)


def _check_names(schema: pa.Schema) -> None:
    if len(schema.names) > MAX_LEAF_COLUMNS:
        raise _too_many(len(schema.names))
    for name in schema.names:
        if not name or "\x00" in name or schema.names.count(name) > 1:
            raise UnreadableFile("bad_header", f"The column name {name!r} is empty, repeated or not text.")


def _too_many(count: int) -> UnreadableFile:
    return UnreadableFile(
        "too_many_columns", f"The file has {count} columns; the limit is {MAX_LEAF_COLUMNS}."
    )


def _checked(batch: pa.RecordBatch, first_row: int) -> tuple[pa.StructArray, list[RowProblem]]:
    """Validate the bytes of the rows against their types; return the good rows and the problems."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        problems: list[RowProblem] = []
        good: list[int] = []
        for index in range(batch.num_rows):
            try:
                batch.slice(index, 1).validate(full=True)
                good.append(index)
            except pa.ArrowInvalid as error:
                reason = f"the row is damaged: {str(error)[:200]}"
                problems.append(RowProblem(None, first_row + index, reason, code="row_damaged"))
        return batch.take(pa.array(good, pa.int64())).to_struct_array(), problems
    return batch.to_struct_array(), []


def _plain(array: pa.Array) -> pa.Array:
    """Convert the values to types without dictionaries, views and extensions, for every Parquet reader."""
    kind = plain_type(array.type)
    return array if kind.equals(array.type) else _to_plain(array, kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values are stored."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if is_text(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_map(kind):
        pair = pa.struct([("key", plain_type(kind.key_type)), ("value", plain_type(kind.item_type))])
        return pa.list_(pair)
    if is_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in kind])
    return kind


def _to_plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        return _to_plain(array.storage, kind)
    if pa.types.is_dictionary(array.type):
        return _to_plain(array.dictionary_decode(), kind)
    if pa.types.is_struct(kind):
        if pa.types.is_struct(array.type) and kind.num_fields:
            children = [_plain(array.field(index)) for index in range(kind.num_fields)]
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
        return array.cast(kind)
    if pa.types.is_list(kind) and not array.type.equals(kind):
        return with_items(array, _plain(array.flatten()), kind)
    return array.cast(kind)
