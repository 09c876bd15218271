"""The inner loops of finding duplicates, compiled to machine code; imported only where they run.

Texts come as Arrow keeps them: one buffer of UTF-8 and offsets. Hashes are 64 bit internally and are
mixed at the end, so that any part of their bits serves.
"""

import numpy as np
from numba import njit

from trellis_data.dedup.alphabet import ALONE, PLANE, SEPARATOR

_WORD_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHINGLE_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_S33 = np.uint64(33)
_ONE = np.uint64(1)
_BLANK = np.uint64(33)
_SEPARATOR, _ALONE, _PLANE = SEPARATOR, ALONE, PLANE


@njit(cache=True, nogil=True, inline="always")
def mix(value):
    value ^= value >> _S33
    value *= _MIX_1
    value ^= value >> _S33
    value *= _MIX_2
    return value ^ (value >> _S33)


@njit(cache=True, nogil=True, inline="always")
def code_point(data, at):
    """Decode the UTF-8 character at a position; return its code point and the position after it."""
    first = np.uint32(data[at])
    if first < 0x80:
        return first, at + 1
    if first < 0xE0:
        return ((first & 0x1F) << 6) | (data[at + 1] & 0x3F), at + 2
    if first < 0xF0:
        return ((first & 0x0F) << 12) | ((data[at + 1] & 0x3F) << 6) | (data[at + 2] & 0x3F), at + 3
    return (
        ((first & 0x07) << 18)
        | ((data[at + 1] & 0x3F) << 12)
        | ((data[at + 2] & 0x3F) << 6)
        | (data[at + 3] & 0x3F)
    ), at + 4


@njit(cache=True, nogil=True)
def tokens_of(data, start, stop, kinds, folded, out):
    """Write the hashes of a text's tokens to ``out`` and count them. A word or a CJK character is a token."""
    count = 0
    word = np.uint64(0)
    at = start
    while at < stop:
        code, at = code_point(data, at)
        if code < _PLANE:
            kind = kinds[code]
            code = np.uint32(folded[code])
        else:
            kind = _ALONE
        if kind == 1:
            word = (word + np.uint64(code) + _ONE) * _WORD_FACTOR
            continue
        if word != 0:
            out[count] = mix(word)
            count += 1
            word = np.uint64(0)
        if kind == _ALONE:
            out[count] = mix((np.uint64(code) + _ONE) * _WORD_FACTOR)
            count += 1
    if word != 0:
        out[count] = mix(word)
        count += 1
    return count


@njit(cache=True, nogil=True)
def shingles_of(tokens, count, size, out):
    """Write the hashes of all runs of ``size`` tokens (of all tokens if fewer) to ``out`` and count them."""
    if count == 0:
        return 0
    size = min(size, count)
    leaving = np.uint64(1)
    for _ in range(size):
        leaving *= _SHINGLE_FACTOR
    rolling = np.uint64(0)
    for index in range(size):
        rolling = rolling * _SHINGLE_FACTOR + tokens[index]
    out[0] = mix(rolling)
    for index in range(size, count):
        rolling = rolling * _SHINGLE_FACTOR + tokens[index] - leaving * tokens[index - size]
        out[index - size + 1] = mix(rolling)
    return count - size + 1


@njit(cache=True, nogil=True)
def content_hashes(data, offsets, kinds, folded):
    """Hash each text by its tokens, so that case, width, spaces and punctuation make no difference.

    0 where a text has no token.
    """
    rows = len(offsets) - 1
    hashes = np.zeros(rows, dtype=np.uint64)
    tokens = np.empty(_longest(offsets), dtype=np.uint64)
    for row in range(rows):
        count = tokens_of(data, offsets[row], offsets[row + 1], kinds, folded, tokens)
        hashes[row] = _whole(tokens, count)
    return hashes


@njit(cache=True, nogil=True)
def folded_hashes(data, offsets, blanks, folded):
    """Hash each text by its characters, ignoring case and width and counting white space as one blank.

    0 where a text is blank.
    """
    rows = len(offsets) - 1
    hashes = np.zeros(rows, dtype=np.uint64)
    for row in range(rows):
        at, stop = offsets[row], offsets[row + 1]
        value = np.uint64(0)
        has_blank = False
        while at < stop:
            code, at = code_point(data, at)
            if code < _PLANE:
                if blanks[code]:
                    has_blank = value != 0
                    continue
                code = np.uint32(folded[code])
            if has_blank:
                value = (value + _BLANK) * _WORD_FACTOR
                has_blank = False
            value = (value + np.uint64(code) + _ONE) * _WORD_FACTOR
            value ^= value >> _S33
        if value != 0:
            hashes[row] = mix(value) | _ONE
    return hashes


@njit(cache=True, nogil=True)
def simhashes(data, offsets, kinds, folded, size):
    """Compute the 64-bit SimHash of each text's shingles (Charikar, 2002); 0 for a text without tokens.

    Each bit is what most of the shingles' hashes have there.
    """
    rows = len(offsets) - 1
    hashes = np.zeros(rows, dtype=np.uint64)
    longest = _longest(offsets)
    tokens = np.empty(longest, dtype=np.uint64)
    shingles = np.empty(longest, dtype=np.uint64)
    votes = np.empty(64, dtype=np.int64)
    for row in range(rows):
        length = tokens_of(data, offsets[row], offsets[row + 1], kinds, folded, tokens)
        count = shingles_of(tokens, length, size, shingles)
        votes[:] = 0
        for index in range(count):
            value = shingles[index]
            for bit in range(64):
                votes[bit] += np.int64((value >> np.uint64(bit)) & _ONE)
        value = np.uint64(0)
        for bit in range(64):
            if 2 * votes[bit] > count:
                value |= _ONE << np.uint64(bit)
        hashes[row] = value
    return hashes


@njit(cache=True, nogil=True)
def byte_hashes(data, offsets):
    """Hash each text by its bytes; 0 for an empty text."""
    rows = len(offsets) - 1
    hashes = np.zeros(rows, dtype=np.uint64)
    for row in range(rows):
        value = np.uint64(0)
        for at in range(offsets[row], offsets[row + 1]):
            value = (value + np.uint64(data[at]) + _ONE) * _WORD_FACTOR
            value ^= value >> _S33
        hashes[row] = mix(value)
    return hashes


@njit(cache=True, nogil=True)
def _longest(offsets):
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest + 1


@njit(cache=True, nogil=True)
def _whole(tokens, count):
    if count == 0:
        return np.uint64(0)
    value = np.uint64(count)
    for index in range(count):
        value = value * _SHINGLE_FACTOR + tokens[index]
    return mix(value) | _ONE


@njit(cache=True, nogil=True)
def sketch(data, offsets, kinds, folded, size, factors, terms, band_rows, bands):
    """Compute the shingles, hashes of whole texts and MinHash bands of some texts in one pass.

    ``bands`` (bands × texts, uint32) is filled; returned are all shingles' hashes (uint32) in a row, how many
    each text has (int64), and the hashes of the whole texts (uint64).
    """
    rows = len(offsets) - 1
    permutations = len(factors)
    # A token takes a byte at least; what stays unused of this is never touched and takes no memory.
    flat = np.empty(offsets[rows] - offsets[0] + 1, dtype=np.uint32)
    counts = np.empty(rows, dtype=np.int64)
    wholes = np.empty(rows, dtype=np.uint64)
    longest = _longest(offsets)
    tokens = np.empty(longest, dtype=np.uint64)
    shingles = np.empty(longest, dtype=np.uint64)
    signature = np.empty(permutations, dtype=np.uint32)
    used = 0
    for row in range(rows):
        length = tokens_of(data, offsets[row], offsets[row + 1], kinds, folded, tokens)
        count = shingles_of(tokens, length, size, shingles)
        wholes[row] = _whole(tokens, length)
        counts[row] = count
        for index in range(count):
            flat[used + index] = np.uint32(shingles[index] >> np.uint64(32))
        sign(flat[used : used + count], factors, terms, signature)
        used += count
        for band in range(len(bands)):
            value = np.uint64(band + 1)
            for index in range(band * band_rows, (band + 1) * band_rows):
                value = (value ^ np.uint64(signature[index])) * _WORD_FACTOR
                value ^= value >> _S33
            bands[band, row] = np.uint32(mix(value) >> np.uint64(32))
    return flat[:used], counts, wholes


@njit(cache=True, nogil=True)
def sign(shingles, factors, terms, signature):
    """Compute the MinHash signature: for each hash function, its smallest value over all shingles."""
    signature[:] = np.uint32(0xFFFFFFFF)
    for shingle in shingles:
        for index in range(len(factors)):
            value = np.uint32(factors[index] * shingle + terms[index])
            if value < signature[index]:
                signature[index] = value


@njit(cache=True, nogil=True)
def grams(data, offsets, blanks, folded, size, bits):
    """Hash the distinct runs of ``size`` characters of each text (``bits`` bits, uint32), and count them.

    Case, width and the amount of white space do not count; a text shorter than a run is one run.
    """
    rows = len(offsets) - 1
    flat = np.empty(offsets[rows] - offsets[0] + 1, dtype=np.uint32)
    counts = np.empty(rows, dtype=np.int64)
    characters = np.empty(_longest(offsets), dtype=np.uint64)
    shingles = np.empty(_longest(offsets), dtype=np.uint64)
    used = 0
    for row in range(rows):
        at, stop = offsets[row], offsets[row + 1]
        length = 0
        while at < stop:
            code, at = code_point(data, at)
            if code < _PLANE:
                code = np.uint32(32) if blanks[code] else np.uint32(folded[code])
            if code == 32 and (length == 0 or characters[length - 1] == 32):
                continue
            characters[length] = np.uint64(code)
            length += 1
        if length > 0 and characters[length - 1] == 32:
            length -= 1
        for index in range(length):
            characters[index] = mix(characters[index] + _ONE)
        count = shingles_of(characters, length, size, shingles)
        mine = flat[used : used + count]
        for index in range(count):
            mine[index] = np.uint32(shingles[index] >> np.uint64(64 - bits))
        mine.sort()
        kept = min(1, count)
        for index in range(1, count):
            if mine[index] != mine[index - 1]:
                mine[kept] = mine[index]
                kept += 1
        counts[row] = kept
        used += kept
    return flat[:used], counts


@njit(cache=True, nogil=True)
def project(flat, starts, weights, size, seed):
    """Sum weighted runs, each at four random places with a random sign; float32, rows × size."""
    rows = len(starts) - 1
    out = np.zeros((rows, size), dtype=np.float32)
    for row in range(rows):
        for at in range(starts[row], starts[row + 1]):
            weight = weights[flat[at]]
            value = mix(np.uint64(flat[at]) * _WORD_FACTOR + np.uint64(seed))
            for _ in range(4):
                place = np.int64((value & np.uint64(0x7FFF)) % np.uint64(size))
                if value & np.uint64(0x8000):
                    out[row, place] += weight
                else:
                    out[row, place] -= weight
                value >>= np.uint64(16)
    return out
