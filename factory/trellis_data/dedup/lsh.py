"""Find near-duplicates by MinHash LSH: bands to candidate pairs, pairs to clusters, in bounded memory."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from trellis_data.dedup import union_find
from trellis_data.dedup.bands import Bands
from trellis_data.dedup.keys import join_equal, sorted_keys
from trellis_data.dedup.number_columns import Column, Ragged

#: Pairs that wait at most before they are compared.
PENDING_PAIRS = 1 << 22
#: Shingles in memory at once while comparing.
SHINGLES_AT_ONCE = 1 << 25


class NearDuplicates:
    """Joins the rows of some scans."""

    def __init__(self, scans: Sequence[Path], threshold: float, bands: Bands) -> None:
        self._scans, self._threshold, self._bands = scans, threshold, bands
        self._shingles = Ragged(scans, "shingles", np.uint32)
        self._parents = np.empty(0, dtype=np.uint32)
        #: Pairs whose similarity was computed, and those that reached the threshold.
        self.compared = 0
        self.joined = 0

    def join(self) -> np.ndarray:
        """Join near duplicates; return the first row of each row's cluster."""
        # Rows of equal tokens have the same set: there is nothing to compare.
        _, self._parents = join_equal(Column(self._scans, "whole", np.uint64))
        # One of several identical rows stands for all of them.
        taken = self._parents == np.arange(len(self._parents), dtype=np.uint32)
        taken &= np.diff(self._shingles.offsets) > 0
        pending = np.empty(0, dtype=np.uint64)
        for keys in self._sorted_bands(taken):
            pending = np.union1d(pending, self._candidates(keys))
            if len(pending) > PENDING_PAIRS:
                self._compare(pending)
                pending = pending[:0]
        self._compare(pending)
        union_find.flatten(self._parents)
        return self._parents

    def similarity(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Compute the exact Jaccard similarity of the shingles of each pair; ``rows`` ascend."""
        out = np.empty(len(rows), dtype=np.float32)
        counts = self._shingles.counts(rows) + self._shingles.counts(others)
        start = 0
        total = np.cumsum(counts)
        while start < len(rows):
            before = total[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(total, before + SHINGLES_AT_ONCE, side="right")))
            self._similarity_of_block(rows[start:stop], others[start:stop], out[start:stop])
            start = stop
        return out

    def _sorted_bands(self, taken: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the sorted keys of every band; the next are read and sorted while the last are in use."""
        every = (
            keys
            for number in range(self._bands.number)
            for keys in sorted_keys(Column(self._scans, f"band-{number}", np.uint32), taken)
        )
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(next, every, None)
            while (keys := coming.result()) is not None:
                coming = pool.submit(next, every, None)
                yield keys

    def _candidates(self, keys: np.ndarray) -> np.ndarray:
        room = np.empty(max(1024, len(keys) // 8), dtype=np.uint64)
        count = union_find.candidate_pairs(keys, self._parents, room)
        if count > len(room):
            room = np.empty(count, dtype=np.uint64)
            union_find.candidate_pairs(keys, self._parents, room)
        return room[:count]

    def _compare(self, pairs: np.ndarray) -> None:
        """Join those of the pairs (ascending) that are similar enough."""
        ones = (pairs >> np.uint64(32)).astype(np.int64)
        others = (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
        hits = self.similarity(ones, others) >= np.float32(self._threshold) - np.float32(1e-6)
        self.compared += len(pairs)
        self.joined += int(hits.sum())
        union_find.join_pairs(self._parents, ones, others, hits)

    def _similarity_of_block(self, rows: np.ndarray, others: np.ndarray, out: np.ndarray) -> None:
        needed = np.union1d(rows, others)
        flat, starts = self._shingles.gather(needed)
        sizes = union_find.make_sets(flat, starts[:-1], np.diff(starts))
        at, to = np.searchsorted(needed, rows), np.searchsorted(needed, others)
        union_find.jaccard(flat, starts[:-1], sizes, at, to, out)
