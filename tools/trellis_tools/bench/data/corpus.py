"""A corpus whose near-duplicates are known: short documents by seed, some of them altered copies of others.

A copy has one stretch of its words replaced by others. What the Jaccard similarity of its runs of words
then is gets counted, not estimated, so recall and false merges can be told exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: Words (in Chinese, characters) of a run.
SHINGLE = 5
#: Share of the rows that are copies.
COPIES = 0.2
#: Similarities that copies aim at; those below 0.8 must stay.
AIMS = (1.0, 0.95, 0.9, 0.87, 0.84, 0.82, 0.75, 0.7, 0.6, 0.4)
#: Rows that are made at once; copies have their original among these.
CHUNK = 50_000
_VOCABULARY = 30_000
_SHORTEST, _LONGEST = 40, 90


@dataclass(frozen=True)
class Copies:
    """Who is a copy of whom, and how similar the two are."""

    originals: np.ndarray
    copies: np.ndarray
    similarity: np.ndarray


@dataclass(frozen=True)
class Planted:
    """What is known of a corpus."""

    rows: int
    copies: Copies
    #: Documents that are too short to stay.
    stubs: np.ndarray


def vocabulary(language: str, random: np.random.Generator) -> pa.Array:
    """Make words of letters, or single Chinese characters; all different."""
    if language == "zh":
        return pa.array([chr(code) for code in range(0x4E00, 0x4E00 + 6000)])
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    weights = np.linspace(3.0, 0.2, len(letters))
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        size = int(random.integers(2, 11))
        words["".join(random.choice(letters, size, p=weights / weights.sum()))] = None
    return pa.array(list(words))


def chunks(rows: int, seed: int, language: str = "en") -> Iterator[tuple[pa.Array, Copies]]:
    """Generate the documents chunk by chunk, with each chunk's copies by their position in the corpus."""
    words = vocabulary(language, np.random.default_rng(seed))
    # Few words are frequent, most are rare, as in language (Zipf).
    shares = 1.0 / (np.arange(len(words)) + 20.0)
    shares = np.cumsum(shares / shares.sum())
    for first in range(0, rows, CHUNK):
        random = np.random.default_rng([seed, first])
        yield _chunk(random, words, shares, first, min(CHUNK, rows - first), " " if language == "en" else "")


def write_corpus(folder: Path, rows: int, seed: int, language: str = "en") -> Planted:
    """Write ``id`` and ``text`` of every document into two Parquet files, dirty; what is in them.

    Dirt is what cleaning takes away without a trace: double blanks, control characters, texts that are too
    short. Wrong decoding is in documents without a copy, so that no similarity changes. Ids count from 1.
    """
    found: list[Copies] = []
    stubs: list[np.ndarray] = []
    schema = pa.schema({"id": pa.int64(), "text": pa.string()})
    first = 0
    with (
        pq.ParquetWriter(folder / "part-0.parquet", schema, compression="zstd") as even,
        pq.ParquetWriter(folder / "part-1.parquet", schema, compression="zstd") as odd,
    ):
        for texts, copies in chunks(rows, seed, language):
            size = len(texts)
            alone = np.ones(size, dtype=bool)
            alone[copies.originals - first] = alone[copies.copies - first] = False
            texts, short = _soil(np.random.default_rng([seed, first, 1]), texts, alone)
            table = pa.table({"id": np.arange(first + 1, first + 1 + size), "text": texts}, schema=schema)
            # A copy and its original are in different files as often as not.
            for part, writer in enumerate((even, odd)):
                writer.write_table(table.take(pa.array(np.arange(part, size, 2))), row_group_size=10_000)
            found.append(copies)
            stubs.append(np.flatnonzero(short) + first)
            first += size
    copies = Copies(
        np.concatenate([each.originals for each in found]),
        np.concatenate([each.copies for each in found]),
        np.concatenate([each.similarity for each in found]),
    )
    return Planted(rows, copies, np.concatenate(stubs))


def _soil(random: np.random.Generator, texts: pa.Array, alone: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """Add dirt to the texts and mark those that are too short afterwards."""
    lots = random.random(len(texts))
    doubled = pc.replace_substring(texts, " ", "  ", max_replacements=5)
    texts = pc.if_else(pa.array(lots < 0.2), doubled, texts)
    texts = pc.if_else(
        pa.array((lots > 0.15) & (lots < 0.25)), pc.binary_join_element_wise("\x07", texts, ""), texts
    )
    misread = pc.binary_join_element_wise(texts, "cafÃ©", " ")
    texts = pc.if_else(pa.array(alone & (lots > 0.9)), misread, texts)
    short = alone & (lots > 0.5) & (lots < 0.52)
    return pc.if_else(pa.array(short), pc.utf8_slice_codeunits(texts, 0, 12), texts), short


def _chunk(
    random: np.random.Generator, words: pa.Array, shares: np.ndarray, first: int, rows: int, between: str
) -> tuple[pa.Array, Copies]:
    count = int(rows * COPIES)
    lengths = random.integers(_SHORTEST, _LONGEST + 1, rows)
    places = random.permutation(rows)
    # An original comes before its copy and has one copy only.
    pairs = np.sort(places[: 2 * count].reshape(count, 2), axis=1)
    lengths[pairs[:, 1]] = lengths[pairs[:, 0]]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.searchsorted(shares, random.random(starts[-1])).astype(np.int32)
    aims = np.asarray(AIMS)[random.integers(0, len(AIMS), count)]
    similarity = np.empty(count)
    for number, (original, copy) in enumerate(pairs):
        source = ids[starts[original] : starts[original + 1]]
        target = ids[starts[copy] : starts[copy + 1]]
        fresh = _alter(random, source, float(aims[number]), target)
        target[:] = fresh
        similarity[number] = jaccard(source, fresh)
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), words.take(pa.array(ids)))
    return pc.binary_join(lists, between), Copies(pairs[:, 0] + first, pairs[:, 1] + first, similarity)


def _alter(random: np.random.Generator, source: np.ndarray, aim: float, others: np.ndarray) -> np.ndarray:
    """Copy a document and replace one run of its words with words from ``others``."""
    runs = len(source) - SHINGLE + 1
    # Of two sets of n runs that share s, the similarity is s / (2n - s).
    lost = runs - round(2 * runs * aim / (1 + aim))
    fresh = source.copy()
    size = max(lost - SHINGLE + 1, min(lost, 1))
    if size:
        at = int(random.integers(SHINGLE - 1, max(SHINGLE, len(source) - size - SHINGLE + 2)))
        fresh[at : at + size] = others[at : at + size]
    return fresh


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    """Compute the Jaccard similarity of the sets of runs of two documents by counting."""
    a = {one[at : at + SHINGLE].tobytes() for at in range(max(1, len(one) - SHINGLE + 1))}
    b = {other[at : at + SHINGLE].tobytes() for at in range(max(1, len(other) - SHINGLE + 1))}
    return len(a & b) / len(a | b)
