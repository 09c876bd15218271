"""A row's digest: 16 bytes that tell whether two rows are the same, on every machine and for years.

The digest is BLAKE2b (16 bytes) over the row as JSON in UTF-8 without spaces, its columns and the
members of its objects in the order of their names. Nulls are written, so a column of nulls counts.
Whole numbers are written in digits whatever their width; floating-point numbers as ``"f"`` and the
bits of the double as a signed integer, so that no formatting decides and NaN is a value; points in
time as ISO texts; bytes as ``"b"`` and hexadecimal digits; decimals as texts. The order of columns and
the width of texts' and lists' offsets do not matter.
"""

import hashlib

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

DIGEST_BYTES = 16
#: Two numbers a row.
DIGEST = np.dtype([("high", "<u8"), ("low", "<u8")])


def digest_rows(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Compute the digests of rows (``DIGEST``), and the length of each row's JSON in bytes."""
    lines = [text.encode() for text in encode_rows(table).to_list()]
    joined = b"".join(hashlib.blake2b(line, digest_size=DIGEST_BYTES).digest() for line in lines)
    return np.frombuffer(joined, dtype=DIGEST), np.fromiter(map(len, lines), np.int64, len(lines))


def encode_rows(table: pa.Table) -> pl.Series:
    """Encode each row as the JSON that its digest is computed from."""
    if not table.num_rows:
        return pl.Series([], dtype=pl.String)
    names = sorted(table.column_names)
    if not names:
        return pl.Series(["{}"] * table.num_rows)
    columns = {name: pl.Series(pl.from_arrow(_plain(_whole(table.column(name))))) for name in names}
    frame = pl.DataFrame(columns)
    return frame.select(pl.struct(pl.all()).struct.json_encode().alias("json"))["json"]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is stored: 32-bit offsets, no dictionaries, no views."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, plain_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which rows are stored."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _plain(values: pa.Array) -> pa.Array:
    """Convert the values to types that JSON has, with object keys sorted."""
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
        return values
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values
    if pa.types.is_dictionary(kind):
        return _plain(values.cast(kind.value_type))
    if pa.types.is_floating(kind):
        return _marked("f", _bits(values))
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        return _marked("b", pa.array([None if each is None else each.hex() for each in values.to_pylist()]))
    if pa.types.is_struct(kind):
        parts = sorted(
            ((field.name, pc.struct_field(values, [at])) for at, field in enumerate(kind)),
            key=lambda part: part[0],
        )
        if not parts:
            return pa.array([None if each is None else "{}" for each in values.to_pylist()], pa.string())
        return pa.StructArray.from_arrays(
            [_plain(part) for _, part in parts], [name for name, _ in parts], mask=values.is_null()
        )
    if pa.types.is_map(kind):
        pairs = pa.struct({"key": kind.key_type, "value": kind.item_type})
        return _plain(values.cast(pa.list_(pairs)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _plain_lists(values)
    return values.cast(pa.string())


def _plain_lists(values: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.LargeListArray.from_arrays(
        pa.array(offsets, pa.int64()), _plain(pc.list_flatten(values)), mask=values.is_null()
    )


def _bits(values: pa.Array) -> pa.Array:
    doubles = values.cast(pa.float64())
    numbers = pc.fill_null(doubles, 0.0).to_numpy(zero_copy_only=False) + 0.0  # no negative zero
    numbers = np.where(np.isnan(numbers), np.nan, numbers)  # one NaN
    return pa.array(numbers.view(np.int64), mask=doubles.is_null().to_numpy(zero_copy_only=False))


def _marked(mark: str, values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(mark, values.cast(pa.string()), "")
