"""BM25, the measure that a trained encoder has to beat.

Okapi BM25 as in Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond",
https://doi.org/10.1561/1500000019, equation 3.15, with the inverse document frequency of Lucene, which is
never negative: ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

K1, B = 1.2, 0.75
#: Chinese is written without blanks: two neighbouring characters are a word.
_CHINESE = re.compile(r"[\u3400-\u9fff]+")
_WORDS = re.compile(r"[^\W_\u3400-\u9fff]+")


def split_words(text: str) -> list[str]:
    """Split into words in lower case, and pairs of neighboring Chinese characters."""
    lowered = text.lower()
    pairs = [
        run[start : start + 2] for run in _CHINESE.findall(lowered) for start in range(max(1, len(run) - 1))
    ]
    return [*_WORDS.findall(lowered), *pairs]


class BM25:
    """Scores of documents for queries."""

    def __init__(self, documents: Sequence[str]) -> None:
        counts = [Counter(split_words(document)) for document in documents]
        lengths = np.array([count.total() for count in counts], dtype=np.float32)
        mean = float(lengths.mean()) if len(lengths) and lengths.any() else 1.0
        norms = K1 * (1 - B + B * lengths / mean)
        postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for word, times in count.items():
                postings.setdefault(word, []).append((place, times))
        self._size = len(documents)
        #: By word: documents, and what the word adds to the score of each.
        self._weights: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}
        for word, found in postings.items():
            places = np.array([place for place, _ in found])
            often = np.array([times for _, times in found], dtype=np.float32)
            idf = math.log(1 + (self._size - len(found) + 0.5) / (len(found) + 0.5))
            self._weights[word] = (places, idf * often * (K1 + 1) / (often + norms[places]))

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return one score per document; 0 where it shares no word with the query."""
        scores = np.zeros(self._size, dtype=np.float32)
        for word, repeats in Counter(split_words(query)).items():
            if word in self._weights:
                places, weights = self._weights[word]
                scores[places] += repeats * weights
        return scores
