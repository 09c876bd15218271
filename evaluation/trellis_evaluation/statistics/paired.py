"""Whether two models differ on the same problems: McNemar's test and the paired bootstrap."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from trellis_evaluation.statistics.intervals import (
    CONFIDENCE,
    RESAMPLES,
    SEED,
    Floats,
    Interval,
    bootstrap,
    has_many,
    normal,
    resampled_means,
)

#: Up to so many problems on which the models disagree the binomial distribution is used as it is.
EXACT_UP_TO = 25
TestName = Literal["mcnemar_exact", "mcnemar_corrected", "paired_bootstrap", "paired_t"]


@dataclass(frozen=True)
class PairedTest:
    """How B differs from A on the problems that both have answered."""

    #: Mean of B minus A, and its 95 % interval (percentile bootstrap over problems); None of one problem.
    difference: float
    interval: Interval | None
    #: Probability of a difference as large as this one if there were none; two-sided.
    p_value: float
    test: TestName
    #: Problems where B is better than A, and where it is worse.
    improved: int
    worsened: int
    n: int


def mcnemar(improved: int, worsened: int) -> tuple[float, TestName]:
    """Compute the two-sided p-value of McNemar's test (1947) from problems that only one model solved.

    Exact (binomial) up to 25 of them, then chi-squared with Edwards's continuity correction (1948).
    """
    from scipy import stats  # here: it takes half a second and 50 MB

    if improved < 0 or worsened < 0:
        raise ValueError("counts are not negative")
    discordant = improved + worsened
    if discordant == 0:
        return 1.0, "mcnemar_exact"
    if discordant <= EXACT_UP_TO:
        return float(stats.binomtest(improved, discordant, 0.5).pvalue), "mcnemar_exact"
    statistic = max(0, abs(improved - worsened) - 1) ** 2 / discordant
    return float(stats.chi2.sf(statistic, df=1)), "mcnemar_corrected"


def paired_bootstrap(
    a: ArrayLike, b: ArrayLike, *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, TestName]:
    """Compute the two-sided p-value for no paired difference (Efron & Tibshirani 1993, 16.4).

    The differences are shifted to a mean of zero and drawn anew; the value is the part of draws whose mean
    is at least as far from zero as the one that was seen, never below 1/(resamples + 1).
    """
    differences = _differences(a, b)
    seen = abs(float(differences.mean()))
    if seen == 0 or len(differences) < 2:
        return 1.0, "paired_bootstrap"
    drawn = resampled_means(differences, resamples=resamples, seed=seed) - differences.mean()
    # A rounding error away from as far is as far.
    extreme = int(np.count_nonzero(np.abs(drawn) >= seen - 1e-12))
    return (extreme + 1) / (resamples + 1), "paired_bootstrap"


def compare_pairs(
    a: ArrayLike, b: ArrayLike, *, confidence: float = CONFIDENCE, seed: int = SEED
) -> PairedTest:
    """Compare scores of the same problems in the same order, one value a problem.

    McNemar's test where each is 0 or 1, else the paired bootstrap; a t-test of pairs where more than 20,000
    differences differ. ``ValueError`` without problems.
    """
    from scipy import stats  # here: it takes half a second and 50 MB

    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    differences = _differences(first, second)
    improved, worsened = int((differences > 0).sum()), int((differences < 0).sum())
    if np.isin(first, (0.0, 1.0)).all() and np.isin(second, (0.0, 1.0)).all():
        p_value, test = mcnemar(improved, worsened)
    elif has_many(differences):
        p_value, test = float(stats.ttest_rel(first, second).pvalue), "paired_t"
    else:
        p_value, test = paired_bootstrap(first, second, seed=seed)
    interval = None
    if has_many(differences):
        interval = normal(differences, confidence=confidence)
    elif len(differences) > 1:
        interval = bootstrap(differences, confidence=confidence, seed=seed)
    return PairedTest(
        difference=float(differences.mean()),
        interval=interval,
        p_value=p_value,
        test=test,
        improved=improved,
        worsened=worsened,
        n=len(differences),
    )


def _differences(a: ArrayLike, b: ArrayLike) -> Floats:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise ValueError(f"{first.shape} and {second.shape} values are no pairs")
    return second - first
