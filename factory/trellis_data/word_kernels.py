"""Loops over the words of many texts, compiled to machine code; imported only where they run.

A word is a run of letters and digits without case and width, or a single character of a script that is
written without spaces (``trellis_data.words.tables``). Texts come as Arrow keeps them,
one buffer of UTF-8 and offsets (see ``trellis_data.words``).
"""

import numpy as np
from numba import njit

from trellis_data.dedup.alphabet import ALONE, PLANE
from trellis_data.dedup.kernels import code_point, mix, shingles_of

_ALONE, _PLANE = ALONE, PLANE
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_RUN = np.uint64(0xD6E8FEB86659FD93)
_ONE = np.uint64(1)
_NEWLINE = 10
#: Columns of what ``repetition`` measures.
LINES, LINE_CHARACTERS, TOP_2, TOP_3, TOP_4, AGAIN_5 = range(6)
MEASURES = 12


@njit(cache=True, nogil=True)
def scan(data, start, stop, kinds, folded, words, sizes, alone):
    """Find a text's words: hashes, lengths in characters, whether each is one character; return a count."""
    count = 0
    word = np.uint64(0)
    size = 0
    at = start
    while at < stop:
        code, at = code_point(data, at)
        kind = _ALONE
        if code < _PLANE:
            kind = kinds[code]
            code = np.uint32(folded[code])
        if kind == 1:
            word = (word + np.uint64(code) + _ONE) * _FACTOR
            size += 1
            continue
        if size:
            words[count], sizes[count], alone[count] = mix(word), size, False
            count += 1
            word, size = np.uint64(0), 0
        if kind == _ALONE:
            words[count], sizes[count], alone[count] = mix((np.uint64(code) + _ONE) * _FACTOR), 1, True
            count += 1
    if size:
        words[count], sizes[count], alone[count] = mix(word), size, False
        count += 1
    return count


@njit(cache=True, nogil=True)
def first_words(data, offsets, kinds, folded):
    """Hash each text's first word (uint64); 0 for a text without words."""
    found = np.zeros(len(offsets) - 1, dtype=np.uint64)
    most = longest(offsets)
    words = np.empty(most, dtype=np.uint64)
    sizes = np.empty(most, dtype=np.int32)
    alone = np.empty(most, dtype=np.bool_)
    for row in range(len(found)):
        if scan(data, offsets[row], offsets[row + 1], kinds, folded, words, sizes, alone):
            found[row] = words[0]
    return found


@njit(cache=True, nogil=True)
def longest(offsets):
    """Return the length in bytes of the longest text, plus one."""
    most = 0
    for row in range(len(offsets) - 1):
        most = max(most, offsets[row + 1] - offsets[row])
    return most + 1


@njit(cache=True, nogil=True)
def _slot(keys, stamps, stamp, key):
    """Find the slot of ``key`` in a hash table of a power of two, or a free slot for it."""
    mask = len(keys) - 1
    at = np.int64(key & np.uint64(mask))
    while stamps[at] == stamp and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def _room(count):
    size = 16
    while size < 2 * count:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def repetition(data, offsets, kinds, folded, least):
    """Count the words of each text (int64) and the shares of repetition (texts × MEASURES, float32).

    The shares: lines that stood before, their characters; characters of the most frequent run of 2, 3 and 4
    words where it occurs at least ``least`` times; characters of the runs of 5 to 10 words that stood before.
    """
    texts = len(offsets) - 1
    shares = np.zeros((texts, MEASURES), dtype=np.float32)
    counts = np.zeros(texts, dtype=np.int64)
    most = longest(offsets)
    words = np.empty(most, dtype=np.uint64)
    sizes = np.empty(most, dtype=np.int32)
    alone = np.empty(most, dtype=np.bool_)
    room = _room(most)
    keys = np.empty(room, dtype=np.uint64)
    stamps = np.zeros(room, dtype=np.int32)
    values = np.empty(room, dtype=np.int32)
    stamp = 0
    for row in range(texts):
        count = scan(data, offsets[row], offsets[row + 1], kinds, folded, words, sizes, alone)
        counts[row] = count
        if count == 0:
            continue
        total = sizes[:count].sum()
        # A small text uses a small part of the table, which stays in the cache.
        part = _room(count)
        if _NEWLINE in data[offsets[row] : offsets[row + 1]]:
            stamp += 1
            _again_lines(data, offsets[row], offsets[row + 1], keys, stamps, stamp, shares[row])
        times = 1
        for size in (2, 3, 4):
            stamp += 1
            top, times = _top_run(
                words, sizes, count, size, keys[:part], stamps[:part], stamp, values[:part], least
            )
            shares[row, TOP_2 + size - 2] = min(1.0, top / total)
            if times == 1:
                break
        for size in range(5, 11):
            if times == 1:
                break
            stamp += 1
            again = _run_again(words, sizes, count, size, keys[:part], stamps[:part], stamp)
            shares[row, AGAIN_5 + size - 5] = again / total
            if again == 0:
                break
    return counts, shares


@njit(cache=True, nogil=True)
def _again_lines(data, start, stop, keys, stamps, stamp, shares):
    """Write the shares of repeated lines and of their bytes to ``shares``."""
    lines, again, size, size_again = 0, 0, 0, 0
    at = start
    while at < stop:
        first = at
        while at < stop and data[at] != _NEWLINE:
            at += 1
        last = at
        at += 1
        while first < last and data[first] <= 32:
            first += 1
        while last > first and data[last - 1] <= 32:
            last -= 1
        if last == first:
            continue
        value = np.uint64(0)
        for place in range(first, last):
            value = (value + np.uint64(data[place]) + _ONE) * _FACTOR
        value = mix(value)
        lines += 1
        size += last - first
        slot = _slot(keys, stamps, stamp, value)
        if stamps[slot] == stamp:
            again += 1
            size_again += last - first
        else:
            stamps[slot], keys[slot] = stamp, value
    if lines:
        shares[LINES] = again / lines
        shares[LINE_CHARACTERS] = size_again / size


@njit(cache=True, nogil=True)
def _run_hash(words, first, size):
    value = np.uint64(0)
    for index in range(first, first + size):
        value = value * _RUN + words[index]
    return mix(value)


@njit(cache=True, nogil=True)
def _top_run(words, sizes, count, size, keys, stamps, stamp, values, least):
    """Find the characters of the most costly run of ``size`` words that occurs at least ``least`` times.

    Also returns how often the most frequent run occurs.
    """
    best, most = 0, 1
    for first in range(count - size + 1):
        key = _run_hash(words, first, size)
        slot = _slot(keys, stamps, stamp, key)
        if stamps[slot] == stamp:
            values[slot] += 1
            most = max(most, values[slot])
            if values[slot] >= least:
                best = max(best, values[slot] * sizes[first : first + size].sum())
        else:
            stamps[slot], keys[slot], values[slot] = stamp, key, 1
    return best, most


@njit(cache=True, nogil=True)
def _run_again(words, sizes, count, size, keys, stamps, stamp):
    """Count the characters of words in a repeated run of ``size`` words, each word once."""
    covered = 0
    characters = 0
    for first in range(count - size + 1):
        key = _run_hash(words, first, size)
        slot = _slot(keys, stamps, stamp, key)
        if stamps[slot] != stamp:
            stamps[slot], keys[slot] = stamp, key
            continue
        for index in range(max(first, covered), first + size):
            characters += sizes[index]
        covered = first + size
    return characters


@njit(cache=True, nogil=True)
def diversity(data, offsets, kinds, folded, window):
    """Compute the mean share of distinct words in a window over each text (float32); NaN without words."""
    texts = len(offsets) - 1
    found = np.full(texts, np.nan, dtype=np.float32)
    most = longest(offsets)
    words = np.empty(most, dtype=np.uint64)
    sizes = np.empty(most, dtype=np.int32)
    alone = np.empty(most, dtype=np.bool_)
    room = _room(most)
    keys = np.empty(room, dtype=np.uint64)
    stamps = np.zeros(room, dtype=np.int32)
    latest = np.empty(room, dtype=np.int64)
    for row in range(texts):
        count = scan(data, offsets[row], offsets[row + 1], kinds, folded, words, sizes, alone)
        if count == 0:
            continue
        part = _room(count)
        width = min(window, count)
        firsts = 0
        for index in range(count):
            slot = _slot(keys[:part], stamps[:part], row + 1, words[index])
            before = latest[slot] if stamps[slot] == row + 1 else -1
            stamps[slot], keys[slot], latest[slot] = row + 1, words[index], index
            # In how many windows the word is the first of its kind.
            lowest = max(before + 1, index - width + 1, 0)
            firsts += max(0, min(index, count - width) - lowest + 1)
        found[row] = firsts / (width * (count - width + 1))
    return found


@njit(cache=True, nogil=True)
def terms_of(words, alone, count, stops, out):
    """Collect a text's terms: words and characters not in ``stops`` (sorted), and pairs of characters.

    At most two for each word: ``out`` has room for that.
    """
    used = 0
    for index in range(count):
        if alone[index] and index + 1 < count and alone[index + 1]:
            out[used] = mix(words[index] * _RUN + words[index + 1])
            used += 1
        at = np.searchsorted(stops, words[index])
        if at == len(stops) or stops[at] != words[index]:
            out[used] = words[index]
            used += 1
    return used


@njit(cache=True, nogil=True)
def overlap(data, offsets, other, other_offsets, kinds, folded, stops):
    """Compute the share of terms that each pair of texts has in common, of the one with fewer (float32).

    NaN where one of the two has no term.
    """
    texts = len(offsets) - 1
    shares = np.full(texts, np.nan, dtype=np.float32)
    most = max(longest(offsets), longest(other_offsets))
    words = np.empty(most, dtype=np.uint64)
    sizes = np.empty(most, dtype=np.int32)
    alone = np.empty(most, dtype=np.bool_)
    mine = np.empty(2 * most, dtype=np.uint64)
    theirs = np.empty(2 * most, dtype=np.uint64)
    for row in range(texts):
        count = scan(data, offsets[row], offsets[row + 1], kinds, folded, words, sizes, alone)
        one = np.unique(mine[: terms_of(words, alone, count, stops, mine)])
        count = scan(other, other_offsets[row], other_offsets[row + 1], kinds, folded, words, sizes, alone)
        two = np.unique(theirs[: terms_of(words, alone, count, stops, theirs)])
        if len(one) == 0 or len(two) == 0:
            continue
        common, left, right = 0, 0, 0
        while left < len(one) and right < len(two):
            if one[left] == two[right]:
                common += 1
                left += 1
                right += 1
            elif one[left] < two[right]:
                left += 1
            else:
                right += 1
        shares[row] = common / min(len(one), len(two))
    return shares


@njit(cache=True, nogil=True)
def votes(data, offsets, kinds, folded, known, languages, number):
    """Count how many words of each text belong to each language (texts × number), and its words.

    ``known`` are hashes of words in order, ``languages`` a bit for each language that has the word.
    """
    texts = len(offsets) - 1
    found = np.zeros((texts, number), dtype=np.int32)
    counts = np.zeros(texts, dtype=np.int32)
    most = longest(offsets)
    words = np.empty(most, dtype=np.uint64)
    sizes = np.empty(most, dtype=np.int32)
    alone = np.empty(most, dtype=np.bool_)
    for row in range(texts):
        count = scan(data, offsets[row], offsets[row + 1], kinds, folded, words, sizes, alone)
        counts[row] = count
        for index in range(count):
            at = np.searchsorted(known, words[index])
            if at < len(known) and known[at] == words[index]:
                for language in range(number):
                    if languages[at] >> np.uint64(language) & _ONE:
                        found[row, language] += 1
    return found, counts


@njit(cache=True, nogil=True)
def runs(data, offsets, kinds, folded, size, least):
    """Hash all runs of ``size`` words of all texts (all words if there are fewer); return also their texts.

    Texts of fewer than ``least`` words have none.
    """
    texts = len(offsets) - 1
    most = longest(offsets)
    words = np.empty(most, dtype=np.uint64)
    sizes = np.empty(most, dtype=np.int32)
    alone = np.empty(most, dtype=np.bool_)
    here = np.empty(most, dtype=np.uint64)
    hashes = np.empty((offsets[texts] - offsets[0]) + texts, dtype=np.uint64)
    owners = np.empty(len(hashes), dtype=np.int32)
    used = 0
    for row in range(texts):
        count = scan(data, offsets[row], offsets[row + 1], kinds, folded, words, sizes, alone)
        if count < least:
            continue
        number = shingles_of(words, count, size, here)
        hashes[used : used + number] = here[:number]
        owners[used : used + number] = row
        used += number
    return hashes[:used].copy(), owners[:used].copy()


@njit(cache=True, nogil=True)
def find_known(data, offsets, kinds, folded, size, least, known, sieve):
    """Find each text's first run that is in ``known`` (sorted): its index there or -1, and a count.

    Runs are those of ``runs``. ``sieve`` is a bit field over the lowest bits of all that is known: most runs
    go no further.
    """
    texts = len(offsets) - 1
    places = np.full(texts, -1, dtype=np.int64)
    counts = np.zeros(texts, dtype=np.int32)
    most = longest(offsets)
    words = np.empty(most, dtype=np.uint64)
    sizes = np.empty(most, dtype=np.int32)
    alone = np.empty(most, dtype=np.bool_)
    here = np.empty(most, dtype=np.uint64)
    mask = np.uint64(len(sieve) * 64 - 1)
    for row in range(texts):
        count = scan(data, offsets[row], offsets[row + 1], kinds, folded, words, sizes, alone)
        if count < least:
            continue
        for value in here[: shingles_of(words, count, size, here)]:
            bit = value & mask
            if not sieve[np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63)) & _ONE:
                continue
            at = np.searchsorted(known, value)
            if at < len(known) and known[at] == value:
                counts[row] += 1
                if places[row] < 0:
                    places[row] = at
    return places, counts
