"""Whether an instruction is new: its ROUGE-L with all that were kept.

The filter of Self-Instruct (Wang et al. 2023, https://arxiv.org/abs/2212.10560). An index of words
rules most of the kept ones out, as a common subsequence is never longer than the number of words in common.
"""

import math
import re
import unicodedata
from array import array
from collections import Counter

import numpy as np

#: Scripts without spaces go by characters.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
#: Of fractions: what is similar by a hair must not be ruled out.
_ROUNDING = 1e-9
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def words_of(text: str) -> list[str]:
    """Split a text into normalized words, for comparison."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def rouge_l(left: list[str], right: list[str]) -> float:
    """Compute the F-measure of the longest common subsequence.

    >>> rouge_l(["the", "cat", "sat"], ["the", "dog", "sat"])
    0.6666666666666666
    """
    ids: dict[str, int] = {}
    first, second = ([ids.setdefault(word, len(ids)) for word in words] for words in (left, right))
    return _f_measure(_common(_masks(first), len(first), second), len(first), len(second))


class NoveltyFilter:
    """Texts that were kept, and whether another one is too similar to any of them."""

    def __init__(self, max_rouge_l: float) -> None:
        self._threshold = max_rouge_l
        self._ids: dict[str, int] = {}
        self._texts: list[array[int]] = []
        self._sizes = array("i")
        #: By word the texts that hold it.
        self._holders: list[array[int]] = []

    def add(self, text: str) -> bool:
        """Keep a text and say True, where it is new; a text without words never is."""
        words = [self._id(word) for word in words_of(text)]
        if not words or self._is_known(words):
            return False
        for word in set(words):
            self._holders[word].append(len(self._texts))
        self._texts.append(array("i", words))
        self._sizes.append(len(words))
        return True

    def _id(self, word: str) -> int:
        found = self._ids.setdefault(word, len(self._ids))
        if found == len(self._holders):
            self._holders.append(array("i"))
        return found

    def _is_known(self, words: list[int]) -> bool:
        masks = _masks(words)
        for number in self._suspects(words):
            other = self._texts[number]
            common = _common(masks, len(words), other)
            if _f_measure(common, len(words), len(other)) >= self._threshold:
                return True
        return False

    def _suspects(self, words: list[int]) -> list[int]:
        """Find texts that may share enough words, the most likely first.

        One that is similar shares at least ``needed`` words, so the most common words need not be looked
        up as long as they are fewer than that: one of the others must be shared too.
        """
        size = len(words)
        needed = math.ceil(self._threshold * size / (2 - self._threshold) - _ROUNDING)
        rarest = sorted(Counter(words).items(), key=lambda item: len(self._holders[item[0]]))
        skipped = 0
        while rarest and skipped + rarest[-1][1] < needed:
            skipped += rarest.pop()[1]
        known = [(self._holders[word], count) for word, count in rarest if self._holders[word]]
        if not known:
            return []
        holders = np.concatenate([np.frombuffer(texts, np.int32) for texts, _ in known])
        weights = np.repeat([count for _, count in known], [len(texts) for texts, _ in known])
        shared = np.bincount(holders, weights)
        found = np.flatnonzero(shared)
        sizes = np.frombuffer(self._sizes, np.int32)[found]
        most = 2 * np.minimum(shared[found] + skipped, np.minimum(sizes, size)) / (sizes + size)
        likely = most >= self._threshold - _ROUNDING
        return [int(each) for each in found[likely][np.argsort(-most[likely], kind="stable")]]


def _f_measure(common: int, left: int, right: int) -> float:
    return 2 * common / (left + right) if left + right else 0.0


def _masks(words: list[int]) -> dict[int, int]:
    """Map each word to its positions, as bits."""
    masks: dict[int, int] = {}
    for position, word in enumerate(words):
        masks[word] = masks.get(word, 0) | 1 << position
    return masks


def _common(masks: dict[int, int], size: int, other: "array[int] | list[int]") -> int:
    """Compute the length of the longest common subsequence, with a table row as the bits of a number.

    Hyyrö 2004, "Bit-parallel LCS-length computation revisited".
    """
    every = (1 << size) - 1
    row = every
    for word in other:
        hit = row & masks.get(word, 0)
        row = (row + hit | row - hit) & every
    return size - row.bit_count()
