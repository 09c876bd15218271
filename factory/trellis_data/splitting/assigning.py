"""Which part a row belongs to: pure functions on arrays, one element a row.

A key is a 64-bit hash that is spread evenly, so that a key's place among all numbers is a row's lot. Rows
of one key always go together.
"""

from dataclasses import dataclass

import numpy as np

from trellis_data import mixing

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Ratios:
    """Shares of the parts, in order; they add up to one."""

    shares: np.ndarray

    def of(self, lots: np.ndarray) -> np.ndarray:
        """Assign parts by random numbers between 0 and 1."""
        edges = np.cumsum(self.shares)[:-1] / self.shares.sum()
        return np.searchsorted(edges, lots, side="right").astype(np.uint8)


def mix(values: np.ndarray, seed: int) -> np.ndarray:
    """Derive keys from hashes under a seed."""
    return mixing.mix(values ^ np.random.default_rng(seed).integers(0, 1 << 64, dtype=np.uint64))


def lots(keys: np.ndarray) -> np.ndarray:
    """Convert keys to numbers from 0 to below 1."""
    return np.asarray((keys >> np.uint64(11)) * 2.0**-53)


def by_counts(keys: np.ndarray, counts: list[int]) -> np.ndarray:
    """Give part 1 the first ``counts[0]`` rows by key, part 2 the next …, and part 0 the rest.

    Where the last key of a part has more rows they all go with it.
    """
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    parts = np.zeros(len(keys), dtype=np.uint8)
    start = 0
    for part, count in enumerate(counts, start=1):
        stop = min(start + count, len(keys))
        if stop > start:
            stop = int(np.searchsorted(ranked, ranked[stop - 1], side="right"))
        parts[order[start:stop]] = part
        start = stop
    return parts


def places(strata: np.ndarray, order_by: np.ndarray | None = None) -> np.ndarray:
    """Count the rows of its stratum before each row, by position or by another order."""
    order = np.argsort(strata, kind="stable") if order_by is None else np.lexsort((order_by, strata))
    ranked = strata[order]
    out = np.empty(len(strata), dtype=np.int64)
    out[order] = np.arange(len(strata)) - np.searchsorted(ranked, ranked, side="left")
    return out


def spread(strata: np.ndarray, seed: int) -> np.ndarray:
    """Draw numbers that fill each stratum evenly, whatever its number of rows.

    The k-th row of a stratum gets the fraction of ``start + k·φ`` (Kronecker's sequence with the golden
    ratio): of any first n rows the number in an interval is off from its share by a few at most, and a row's
    lot does not depend on rows after it.
    """
    return np.asarray((lots(mix(strata, seed)) + places(strata) * _GOLDEN) % 1.0)


def quotas(sizes: np.ndarray, count: int) -> np.ndarray:
    """Divide ``count`` among strata in proportion to their sizes, by largest remainder."""
    exact = count * sizes / max(int(sizes.sum()), 1)
    dealt = np.floor(exact).astype(np.int64)
    missing = min(count, int(sizes.sum())) - int(dealt.sum())
    dealt[np.argsort(dealt - exact, kind="stable")[:missing]] += 1
    return dealt


def by_counts_in_strata(strata: np.ndarray, keys: np.ndarray, counts: list[int]) -> np.ndarray:
    """Assign parts like ``by_counts``, with each count divided among the strata in proportion."""
    _, index, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    rank = places(strata, keys)
    parts = np.zeros(len(keys), dtype=np.uint8)
    taken = np.zeros(len(sizes), dtype=np.int64)
    for part, count in enumerate(counts, start=1):
        until = np.minimum(taken + quotas(sizes, count), sizes)
        parts[(rank >= taken[index]) & (rank < until[index])] = part
        taken = until
    return parts


def by_time(times: np.ndarray, shares: list[float]) -> tuple[np.ndarray, list[float]]:
    """Assign parts from the oldest to the newest rows by shares; return also the times at which parts begin.

    Rows of one time are in one part. Rows without a time count as the oldest.
    """
    known = np.sort(times[~np.isnan(times)])
    missing = len(times) - len(known)
    begins: list[float] = []
    for share in np.cumsum(shares)[:-1]:
        at = round(float(share) * len(times)) - missing
        if at <= 0:
            begins.append(-np.inf)
        elif at >= len(known):
            begins.append(np.inf)
        else:
            # Rows of the time at the border go to the older part.
            after = int(np.searchsorted(known, known[at - 1], side="right"))
            begins.append(float(known[after]) if after < len(known) else np.inf)
    oldest = np.where(np.isnan(times), -np.inf, times)
    parts = np.searchsorted(np.asarray(begins), oldest, side="right").astype(np.uint8)
    parts[np.isnan(times)] = 0
    return parts, begins
