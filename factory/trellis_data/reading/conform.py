"""Values of one type as those of a wider one, and as Parquet can hold them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis_data.reading.column_types import is_list
from trellis_data.reading.mixing import numbers_as_texts


def conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert values to a type with more keys, or numbers for integers. Raise ArrowInvalid if impossible."""
    if array.type.equals(kind):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type=kind)
    if pa.types.is_struct(kind):
        known = {field.name: index for index, field in enumerate(array.type)}
        children = [
            conform(array.field(known[field.name]), field.type)
            if field.name in known
            else pa.nulls(len(array), type=field.type)
            for field in kind
        ]
        if not children:
            return array.cast(kind)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if is_list(kind) and is_list(array.type):
        return with_items(array, conform(array.flatten(), kind.value_type), kind)
    if pa.types.is_floating(array.type) and pa.types.is_string(kind):
        return numbers_as_texts(array)
    return array.cast(kind)


def with_items(lists: pa.Array, items: pa.Array, kind: pa.DataType) -> pa.Array:
    """Build lists with the lengths of ``lists`` and the given ``items`` (see ``flatten``)."""
    lengths = pc.fill_null(lists.value_lengths(), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    large = pa.types.is_large_list(kind)
    builder, number = (pa.LargeListArray, pa.int64()) if large else (pa.ListArray, pa.int32())
    return builder.from_arrays(pa.array(offsets, number), items, type=kind, mask=lists.is_null())


def storable_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with ``{}`` as null, because Parquet has no objects without keys."""
    if pa.types.is_struct(kind):
        fields = [field.with_type(storable_type(field.type)) for field in kind]
        return pa.struct(fields) if fields else pa.null()
    return pa.list_(storable_type(kind.value_type)) if pa.types.is_list(kind) else kind


def storable(array: pa.Array) -> pa.Array:
    """Return the values with ``{}`` as null."""
    kind = array.type
    wanted = storable_type(kind)
    if wanted.equals(kind):
        return array
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            return pa.nulls(len(array))
        children = [storable(array.field(index)) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
    return with_items(array, storable(array.flatten()), wanted)


def has_huge_numbers(array: pa.Array) -> bool:
    """Return whether a decimal exceeds 64-bit integers, so that it may have been an integer in the file."""
    kind = array.type
    if pa.types.is_floating(kind):
        largest = pc.max(pc.abs(array)).as_py()
        return largest is not None and largest >= 2.0**63
    if pa.types.is_struct(kind):
        return any(has_huge_numbers(child) for child in array.flatten())
    return is_list(kind) and has_huge_numbers(array.flatten())
