"""How high the right tool stands: recall and mean reciprocal rank."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RECALL_AT = (1, 5, 10, 20)
MRR_AT = 10


def rank_of_targets(scores: NDArray[np.float32], targets: Sequence[int]) -> NDArray[np.int64]:
    """Return the rank (1, 2, 3 ...) of each query's tool; ``scores`` is (queries, tools).

    A tool that scores the same as the right one stands before it: ties are no luck.
    """
    own = scores[np.arange(len(targets)), list(targets)]
    return (scores >= own[:, None]).sum(axis=1).astype(np.int64)


def measure_ranks(ranks: NDArray[np.int64]) -> dict[str, float]:
    """Return ``recall@k`` (each query has one right tool) and ``mrr@10``; 0 without queries."""
    if len(ranks) == 0:
        return {**{f"recall@{k}": 0.0 for k in RECALL_AT}, f"mrr@{MRR_AT}": 0.0}
    reciprocal = np.where(ranks <= MRR_AT, 1.0 / ranks, 0.0)
    return {
        **{f"recall@{k}": float((ranks <= k).mean()) for k in RECALL_AT},
        f"mrr@{MRR_AT}": float(reciprocal.mean()),
    }
