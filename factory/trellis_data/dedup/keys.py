"""Sorted keys of hashed rows: how rows of equal hash come together without holding all hashes of all rows."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from trellis_data.dedup import union_find
from trellis_data.dedup.number_columns import Column
from trellis_data.operator import OperatorProblem

#: Rows whose keys are sorted at once (8 bytes each); more are taken in parts by the hash's value.
PART_ROWS = 1 << 25
_MAX_ROWS = 1 << 32


def new_forest(rows: int) -> np.ndarray:
    """Put every row in its own tree; raise ``OperatorProblem`` if there are too many rows."""
    if rows >= _MAX_ROWS:
        raise OperatorProblem(
            "too_many_rows", f"{rows} rows exceed the limit of {_MAX_ROWS}; split the dataset."
        )
    return np.arange(rows, dtype=np.uint32)


def join_equal(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Join rows of equal hash into one tree; return the column's hashes and the forest. 0 means no hash."""
    values = column.whole()
    parents = new_forest(len(column))
    for keys in sorted_keys(column, values != 0, shift=32):
        union_find.join_equals(keys, values, parents)
    union_find.flatten(parents)
    return values, parents


def sorted_keys(column: Column, taken: np.ndarray, shift: int = 0, bits: int = 32) -> Iterator[np.ndarray]:
    """Yield sorted keys ``hash << 32 | row`` of the rows that are taken, in parts of bounded size.

    The hash is what is left of a value of the column after ``shift``, its lowest ``bits`` bits. Equal hashes
    are never in different parts.
    """
    parts = max(1, -(-len(column) // PART_ROWS))
    edges = [number * (1 << bits) // parts for number in range(parts + 1)]
    for low, high in pairwise(edges):
        # Room for all of them; what a part leaves of it is never touched and takes no memory.
        keys = np.empty(int(taken.sum()), dtype=np.uint64)
        used = 0
        for first, values in column.pieces():
            hashes = (values >> values.dtype.type(shift)).astype(np.uint32, copy=False)
            if bits < 32:
                hashes = hashes & np.uint32((1 << bits) - 1)
            wanted = taken[first : first + len(values)]
            if parts > 1:
                wanted = wanted & (hashes >= low) & (hashes < high)
            used += union_find.make_keys(hashes, wanted, first, keys[used:])
        keys = keys[:used]
        keys.sort()
        yield keys
