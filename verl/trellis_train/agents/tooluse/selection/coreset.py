"""A part of the dialogs that stands for all of them: the hardest, the most unlike each other, or both."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trellis_train.agents.tooluse.selection.metrics import CJK

Strategy = Literal["loss_topk", "diversity", "hybrid", "random"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
#: Of a hybrid selection, the share that is chosen by the loss.
LOSS_SHARE_PERCENT = 60
_SHORTEST_WORD = 3
_WORD = re.compile(rf"[^\W{CJK}]+")
_CJK_RUN = re.compile(rf"[{CJK}]+")
#: Two similarities that differ by less are equal: sums in another order must not change what is chosen.
_DECIMALS = 9


@dataclass(frozen=True)
class CoresetItem:
    """A dialog to choose from."""

    id: str
    text: str
    #: Measured, or ``metrics.measure(...).loss``.
    loss: float


def select(items: Sequence[CoresetItem], k: int, strategy: Strategy, *, seed: int) -> list[int]:
    """Select ``k`` items (or all, if there are fewer); return their positions in order of selection.

    ``loss_topk``: the highest loss first, equal ones by id. ``random``: drawn by the seed. ``diversity``: the
    longest vector of terms first, then always the item least like the one chosen that is most like it
    (farthest point first: Gonzalez 1985, https://doi.org/10.1016/0304-3975(85)90224-5); equal ones by id.
    ``hybrid``:
    int(.6 k) by loss, the rest by diversity among the items left. Raises ValueError for another strategy, a
    negative ``k`` or two items with one id.
    """
    if k < 0:
        raise ValueError(f"cannot select {k} items")
    if strategy not in STRATEGIES:
        raise ValueError(f"unknown strategy {strategy!r}; choose from {', '.join(STRATEGIES)}")
    if len({item.id for item in items}) < len(items):
        raise ValueError("two items have the same id")
    k = min(k, len(items))
    everything = list(range(len(items)))
    if strategy == "random":
        by_id = sorted(everything, key=lambda place: items[place].id)
        return random.Random(f"{seed}:coreset").sample(by_id, k)  # noqa: S311 - no secret
    if strategy == "loss_topk":
        return _hardest(items, k)
    if strategy == "diversity":
        return _farthest(items, everything, k)
    # Whole numbers: .6 x 5 is 3, whatever floating point makes of it.
    chosen = _hardest(items, k * LOSS_SHARE_PERCENT // 100)
    left = sorted(set(everything) - set(chosen))
    return chosen + _farthest(items, left, k - len(chosen))


def terms(text: str) -> list[str]:
    """Return a text's terms for comparison: words of 3 or more letters, and pairs of adjacent CJK characters.

    >>> terms("Go to the bank, 请订房")
    ['the', 'bank', '请订', '订房']
    """
    words = [word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST_WORD]
    pairs = [run[at : at + 2] for run in _CJK_RUN.findall(text) for at in range(len(run) - 1)]
    return words + pairs


def _hardest(items: Sequence[CoresetItem], k: int) -> list[int]:
    return sorted(range(len(items)), key=lambda place: (-items[place].loss, items[place].id))[:k]


def _farthest(items: Sequence[CoresetItem], places: list[int], k: int) -> list[int]:
    """Select ``k`` places, each as unlike those before it as possible; O(k x terms in the places)."""
    if k == 0:
        return []
    # In the order of ids, the first of equal ones is the one wanted.
    places = sorted(places, key=lambda place: items[place].id)
    rows = _Terms([items[place].text for place in places])
    chosen = [int(np.argmax(rows.squared_norms))]
    # Of each row to the chosen one that is most like it.
    nearest = np.full(len(places), -np.inf)
    while len(chosen) < k:
        nearest = np.maximum(nearest, rows.similarities(chosen[-1]))
        distance = np.round(1.0 - nearest, _DECIMALS)
        distance[chosen] = -np.inf
        chosen.append(int(np.argmax(distance)))
    return [places[row] for row in chosen]


class _Terms:
    """Counts of terms, row by row, without the zeros."""

    def __init__(self, texts: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        columns: list[int] = []
        values: list[int] = []
        lengths: list[int] = []
        for text in texts:
            counts = Counter(terms(text))
            columns += [numbers.setdefault(term, len(numbers)) for term in counts]
            values += counts.values()
            lengths.append(len(counts))
        self._columns: NDArray[np.int64] = np.asarray(columns, dtype=np.int64)
        counted: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
        self._starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._rows: NDArray[np.int64] = np.repeat(np.arange(len(texts)), lengths)
        #: Of each row, before it is normalised: whole numbers, so that equal ones are equal.
        self.squared_norms: NDArray[Any] = np.bincount(self._rows, weights=counted**2, minlength=len(texts))
        norms = np.sqrt(np.maximum(self.squared_norms, 1.0))
        self._values: NDArray[np.float64] = counted / norms[self._rows]
        self._count, self._width = len(texts), len(numbers)

    def similarities(self, row: int) -> NDArray[Any]:
        """Compute the cosine of every row to this one; shape (rows,)."""
        own = slice(self._starts[row], self._starts[row + 1])
        dense = np.zeros(self._width)
        dense[self._columns[own]] = self._values[own]
        products = self._values * dense[self._columns]
        return np.bincount(self._rows, weights=products, minlength=self._count)
