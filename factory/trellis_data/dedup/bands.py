"""How many bands of how many hashes find pairs of a given similarity.

A signature of b·r MinHash values is cut into b bands of r values. Two sets of Jaccard similarity s agree in
one value with probability s (Broder, 1997), in a band with s^r, and in one band at least with 1 - (1 -
s^r)^b (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, 3.4). Larger r means fewer candidates that
are none; smaller r means fewer pairs missed.
"""

from typing import NamedTuple

#: Least probability that a pair right at the threshold becomes a candidate. Above it, it only grows.
RECALL_AT_THRESHOLD = 0.98


class Bands(NamedTuple):
    """How a signature is cut."""

    number: int
    rows: int

    def probability(self, similarity: float) -> float:
        """Compute the probability that two sets of this similarity become candidates."""
        return 1.0 - (1.0 - similarity**self.rows) ** self.number


def choose_bands(threshold: float, permutations: int) -> Bands:
    """Choose the longest bands within so many permutations that still find pairs at the threshold."""
    for rows in range(permutations, 1, -1):
        bands = Bands(permutations // rows, rows)
        if bands.probability(threshold) >= RECALL_AT_THRESHOLD:
            return bands
    return Bands(permutations, 1)
