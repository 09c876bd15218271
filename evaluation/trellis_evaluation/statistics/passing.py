"""pass@k without bias (Chen et al. 2021, "Evaluating Large Language Models Trained on Code")."""

from collections.abc import Sequence

import numpy as np
from trellis_contracts.evaluation import Score

from trellis_evaluation.statistics.intervals import SEED, mean_score


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Estimate the probability that at least one of ``k`` programs is right, from ``correct`` of ``n``.

    1 - C(n-c, k) / C(n, k) as a product, which does not overflow. ``ValueError`` unless 1 <= k <= n.
    """
    if not 1 <= k <= n or not 0 <= correct <= n:
        raise ValueError(f"pass@{k} cannot be estimated from {correct} right of {n}")
    if n - correct < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - correct + 1, n + 1)))


def pass_at_k_score(counts: Sequence[tuple[int, int]], k: int, *, seed: int = SEED) -> Score:
    """Compute ``pass@k`` over problems from each one's (number of programs, number of right ones)."""
    return mean_score(f"pass@{k}", [pass_at_k(n, correct, k) for n, correct in counts], seed=seed)
