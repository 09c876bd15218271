"""Compiled inner loops of clustering (union-find, Jaccard, Hamming); imported only where they run.

Rows are numbers below 2^32. A key carries a hash in its high half and a row in its low half, so that sorting
plain integers brings rows of equal hash together, in order.
"""

import numpy as np
from numba import njit

_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)
#: In a run of equal keys up to this long every pair is looked at; in longer ones each row with the first
#: row and with the one before it, which keeps the work linear. Other bands group the rows otherwise.
ALL_PAIRS = 16


@njit(cache=True, nogil=True)
def find(parents, row):
    """Find the root of a row's tree, halving the path on the way."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@njit(cache=True, nogil=True)
def union(parents, one, other):
    """Join two trees; the earlier row becomes the root, so that trees do not depend on the order of joins."""
    one, other = find(parents, one), find(parents, other)
    if one < other:
        parents[other] = one
    elif other < one:
        parents[one] = other


@njit(cache=True, nogil=True)
def flatten(parents):
    """Let every row point at its root; a root is the first row of its cluster."""
    for row in range(len(parents)):
        parents[row] = parents[parents[row]]


@njit(cache=True, nogil=True)
def join_pairs(parents, ones, others, hits):
    """Join the pairs that hit."""
    for index in range(len(ones)):
        if hits[index]:
            union(parents, np.int64(ones[index]), np.int64(others[index]))


@njit(cache=True, nogil=True)
def make_keys(hashes, taken, first, out):
    """Write the keys of the rows taken to ``out`` and count them; ``first`` is the first row's number."""
    count = 0
    for index in range(len(hashes)):
        if taken[index]:
            out[count] = (np.uint64(hashes[index]) << _S32) | np.uint64(first + index)
            count += 1
    return count


@njit(cache=True, nogil=True)
def join_equals(keys, values, parents):
    """Join rows of one run whose full hashes are equal."""
    start = 0
    while start < len(keys):
        stop = start + 1
        while stop < len(keys) and keys[stop] >> _S32 == keys[start] >> _S32:
            stop += 1
        for later in range(start + 1, stop):
            row = np.int64(keys[later] & _LOW)
            # The run is as good as always one group; a stranger in it is passed over.
            for earlier in range(start, later):
                other = np.int64(keys[earlier] & _LOW)
                if values[other] == values[row]:
                    union(parents, other, row)
                    break
        start = stop


@njit(cache=True, nogil=True)
def candidate_pairs(keys, parents, out):
    """Write the pairs of a run that are not joined yet to ``out`` as ``earlier << 32 | later``; count them.

    Writes no further than ``out`` is long but counts on, so that a caller can come again with more room.
    """
    count = 0
    start = 0
    while start < len(keys):
        stop = start + 1
        while stop < len(keys) and keys[stop] >> _S32 == keys[start] >> _S32:
            stop += 1
        for later in range(start + 1, stop):
            row = keys[later] & _LOW
            root = find(parents, np.int64(row))
            is_short = stop - start <= ALL_PAIRS
            earlier = start if is_short else later - 1
            while earlier < later:
                other = keys[earlier] & _LOW
                if find(parents, np.int64(other)) != root:
                    if count < len(out):
                        out[count] = (other << _S32) | row
                    count += 1
                earlier += 1
            if not is_short and later - 1 > start:
                other = keys[start] & _LOW
                if find(parents, np.int64(other)) != root:
                    if count < len(out):
                        out[count] = (other << _S32) | row
                    count += 1
        start = stop
    return count


@njit(cache=True, nogil=True)
def make_sets(flat, starts, counts):
    """Sort each row's shingles in place and squeeze out what is there twice; the new counts."""
    sizes = np.empty(len(starts), dtype=np.int64)
    for index in range(len(starts)):
        mine = flat[starts[index] : starts[index] + counts[index]]
        mine.sort()
        size = min(1, len(mine))
        for at in range(1, len(mine)):
            if mine[at] != mine[at - 1]:
                mine[size] = mine[at]
                size += 1
        sizes[index] = size
    return sizes


@njit(cache=True, nogil=True)
def jaccard(flat, starts, sizes, ones, others, out):
    """Compute the Jaccard similarity of each pair of sets, into ``out``."""
    for index in range(len(ones)):
        one, other = ones[index], others[index]
        a, b = starts[one], starts[other]
        a_stop, b_stop = a + sizes[one], b + sizes[other]
        shared = 0
        while a < a_stop and b < b_stop:
            if flat[a] == flat[b]:
                shared += 1
                a += 1
                b += 1
            elif flat[a] < flat[b]:
                a += 1
            else:
                b += 1
        union_size = sizes[one] + sizes[other] - shared
        out[index] = shared / union_size if union_size else 0.0


@njit(cache=True, nogil=True)
def join_near_hashes(keys, values, parents, distance, window):
    """Join rows of one run whose 64-bit hashes differ in at most ``distance`` bits.

    In a run longer than ``window`` a row is compared with the ``window`` rows before it only; how many
    comparisons were left out is returned.
    """
    left_out = 0
    start = 0
    while start < len(keys):
        stop = start + 1
        while stop < len(keys) and keys[stop] >> _S32 == keys[start] >> _S32:
            stop += 1
        for later in range(start + 1, stop):
            row = np.int64(keys[later] & _LOW)
            value = values[row]
            first = max(start, later - window)
            left_out += first - start
            for earlier in range(first, later):
                other = np.int64(keys[earlier] & _LOW)
                if _bits(value ^ values[other]) <= distance:
                    union(parents, other, row)
        start = stop
    return left_out


@njit(cache=True, nogil=True)
def hamming(ones, others):
    """Count the bits in which two hashes differ, pair by pair."""
    out = np.empty(len(ones), dtype=np.int64)
    for index in range(len(ones)):
        out[index] = _bits(ones[index] ^ others[index])
    return out


@njit(cache=True, nogil=True, inline="always")
def _bits(value):
    value = value - ((value >> np.uint64(1)) & np.uint64(0x5555555555555555))
    value = (value & np.uint64(0x3333333333333333)) + (
        (value >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def survivors(parents, ranks, best):
    """Write each root's row with the highest rank in its cluster, the first of equals, to ``best``."""
    for row in range(len(parents)):
        root = parents[row]
        if best[root] < 0 or ranks[row] > ranks[best[root]]:
            best[root] = row
