"""Texts as the compiled loops over words want them; importing this compiles nothing."""

import unicodedata
from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa

from trellis_data.dedup import alphabet

#: Measures of a text look at this much of it: their working memory is some twenty times as large.
_MOST_CHARACTERS = 1_000_000


@cache
def tables() -> tuple[np.ndarray, np.ndarray]:
    """Build the tables as for duplicates, but with every punctuation mark or symbol as a separator.

    Here words are counted and looked up; that ``3 + 4`` is not ``3 - 4`` is no matter.
    """
    kinds, folded = alphabet.tables()
    kinds = kinds.copy()
    for code in np.flatnonzero(kinds == alphabet.ALONE):
        if unicodedata.category(chr(folded[code]))[0] in "PS":
            kinds[code] = alphabet.SEPARATOR
    return kinds, folded


def buffers(texts: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the concatenated UTF-8 bytes of all texts (uint8) and the offsets of the texts (int64)."""
    array = texts.fill_null("").to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    if data is None or data.size == 0:
        return np.frombuffer(b"\0", dtype=np.uint8), places
    return np.frombuffer(data, dtype=np.uint8), places


def head(texts: pl.Series) -> pl.Series:
    """Cut very long texts: the statistics of their beginning stand for the whole."""
    if (texts.str.len_bytes().max() or 0) <= _MOST_CHARACTERS:  # type: ignore[operator]
        return texts
    return texts.str.slice(0, _MOST_CHARACTERS)


def hashes_of(words: list[str]) -> np.ndarray:
    """Hash single words as the kernels do (uint64), in order; 0 for what is not a word."""
    from trellis_data.word_kernels import first_words

    hashes: np.ndarray = first_words(*buffers(pl.Series(words, dtype=pl.String)), *tables())
    return hashes


def repetition_shares(texts: pl.Series, least: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Count the words of each text and its shares of repetition (``word_kernels.repetition``).

    A most frequent run of words counts where it occurs ``least`` times.
    """
    from trellis_data.word_kernels import repetition

    counts, shares = repetition(*buffers(head(texts)), *tables(), least)
    return counts, shares
