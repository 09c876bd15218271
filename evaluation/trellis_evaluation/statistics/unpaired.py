"""Whether two settings differ over seeds: Welch's t-test of unpaired values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trellis_evaluation.statistics.intervals import CONFIDENCE, Interval


@dataclass(frozen=True)
class UnpairedTest:
    """How B differs from A, one value for each seed."""

    #: Mean of B minus mean of A.
    difference: float
    #: Welch's t interval and two-sided p-value; None where no value differs from its group's mean.
    interval: Interval | None
    p_value: float | None


def welch(a: ArrayLike, b: ArrayLike, *, confidence: float = CONFIDENCE) -> UnpairedTest:
    """Compare the means of two groups of independent values with unequal variances (Welch 1947).

    With three seeds a normal interval or a bootstrap is far too narrow; this one allows for the small
    number with Student's distribution. ``ValueError`` with fewer than two values in a group.
    """
    from scipy import stats  # here: it takes half a second and 50 MB

    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if min(len(first), len(second)) < 2:
        raise ValueError(f"{len(first)} and {len(second)} values have no spread to compare with")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a value is no finite number")
    difference = float(second.mean() - first.mean())
    if not np.ptp(first) and not np.ptp(second):
        return UnpairedTest(difference, None, None)
    found = stats.ttest_ind(second, first, equal_var=False)
    bounds = found.confidence_interval(confidence)
    return UnpairedTest(difference, Interval(float(bounds.low), float(bounds.high)), float(found.pvalue))
