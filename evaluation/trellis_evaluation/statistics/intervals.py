"""Means with standard errors and 95 % intervals; several generations of one problem count as one cluster."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from trellis_contracts.evaluation import Score

CONFIDENCE = 0.95
#: Resamples of a bootstrap. 10,000 put a bound's own error near 1 % of the interval's width.
RESAMPLES = 10_000
#: Drawn anew for each call, so that the same values always have the same interval.
SEED = 20_260_101
#: Numbers of one batch of resamples: 32 MB.
_BATCH = 4_000_000
#: With more values that differ, drawing places is faster than drawing counts of values.
_FEW = 1000
#: From so many different values on the mean is normal to three digits, and a bootstrap would take minutes.
MANY = 20_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """Bounds between which the true value lies with the confidence that was asked for."""

    low: float
    high: float


def wilson(correct: int, n: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Compute Wilson's score interval of ``correct`` among ``n`` (1927), without continuity correction.

    It keeps inside 0 to 1 and has a width where all or none are right. ``ValueError`` for n = 0.
    """
    from scipy import stats  # here: it takes half a second and 50 MB

    if n < 1 or not 0 <= correct <= n:
        raise ValueError(f"{correct} of {n} is no proportion")
    found = stats.binomtest(correct, n).proportion_ci(confidence, method="wilson")
    return Interval(float(found.low), float(found.high))


def cluster_means(values: ArrayLike, clusters: Sequence[Hashable] | None = None) -> Floats:
    """Compute the mean of each cluster, in order of first occurrence; the values if there are none."""
    numbers = np.asarray(values, dtype=np.float64)
    if clusters is None:
        return numbers
    if len(clusters) != len(numbers):
        raise ValueError(f"{len(numbers)} values have {len(clusters)} clusters")
    places: dict[Hashable, int] = {}
    which = np.fromiter((places.setdefault(each, len(places)) for each in clusters), np.int64, len(clusters))
    return np.bincount(which, weights=numbers) / np.bincount(which)


def resampled_means(values: Floats, *, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Compute the means of ``resamples`` draws with replacement, each as large as the values.

    Where few values differ a draw is a multinomial count over these, which is the same distribution and
    takes milliseconds for 14,000 zeros and ones.
    """
    distinct, counts = np.unique(values, return_counts=True)
    draw, n = np.random.default_rng(seed), len(values)
    few = len(distinct) <= _FEW
    found = np.empty(resamples)
    step = max(1, _BATCH // (len(distinct) if few else n))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if few:
            means = draw.multinomial(n, counts / n, size=size) @ distinct / n
        else:
            means = values[draw.integers(0, n, size=(size, n), dtype=np.int32)].mean(axis=1)
        found[start : start + size] = means
    return found


def bootstrap(
    values: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """Compute the percentile bootstrap interval of the mean of cluster means (Efron 1979), by cluster.

    Several generations of one problem resemble each other: drawing them one by one would give an interval
    that is too narrow. ``ValueError`` without values.
    """
    means = cluster_means(values, clusters)
    if not len(means):
        raise ValueError("there are no values to resample")
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled_means(means, resamples=resamples, seed=seed), (tail, 1 - tail))
    return Interval(float(low), float(high))


def has_many(means: Floats) -> bool:
    """Return whether so many values differ that the normal distribution works as well as the bootstrap."""
    return len(means) > MANY and len(np.unique(means)) > MANY


def normal(means: Floats, *, confidence: float = CONFIDENCE) -> Interval:
    """Compute the normal interval of a mean, which suits large numbers of values."""
    from scipy import stats  # here: it takes half a second and 50 MB

    half = float(stats.norm.ppf((1 + confidence) / 2) * means.std(ddof=1) / np.sqrt(len(means)))
    return Interval(float(means.mean()) - half, float(means.mean()) + half)


def mean_score(
    metric: str, values: ArrayLike, clusters: Sequence[Hashable] | None = None, *, seed: int = SEED
) -> Score:
    """Compute the mean over problems, with its standard error and interval.

    Wilson's where each problem is right or wrong, the bootstrap's otherwise (the normal one where more than
    20,000 values differ); of fewer than two problems that are not right or wrong nothing is known. The
    standard error is the sample's, s/√n, as lm-evaluation-harness reports it. ``n`` counts problems, not
    generations.
    """
    means = cluster_means(values, clusters)
    n = len(means)
    if n == 0:
        return Score(metric=metric, value=0.0, n=0)
    if not np.isfinite(means).all():
        raise ValueError(f"{metric} has values that are no numbers")
    value = float(means.mean())
    stderr = float(means.std(ddof=1) / np.sqrt(n)) if n > 1 else None
    method: Literal["wilson", "bootstrap", "normal"]
    if np.isin(means, (0.0, 1.0)).all():
        interval, method = wilson(int(means.sum()), n), "wilson"
    elif n > 1:
        method = "normal" if has_many(means) else "bootstrap"
        interval = normal(means) if method == "normal" else bootstrap(means, seed=seed)
    else:
        return Score(metric=metric, value=value, n=n)
    return Score(
        metric=metric, value=value, stderr=stderr, low=interval.low, high=interval.high, method=method, n=n
    )
