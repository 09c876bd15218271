"""Means of a metric over several runs, at steps at which all of them were measured.

Every mean and deviation is that of single steps, from the points as they were written: between the extremes
of a thinned curve, there is nothing to interpolate.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, literal, select

from trellis_api.jobs.metrics.headline import Series
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups


@dataclass(frozen=True)
class MeanCurve:
    """Columns of equal length; the deviation is that of a sample, over the runs."""

    steps: list[int]
    means: list[float]
    deviations: list[float]
    #: Steps from one that is told to the next, where not every one is.
    stride: int


def read_mean(
    connection: Connection, *, series: Sequence[Series], max_points: int, from_step: int, to_step: int | None
) -> MeanCurve | None:
    """Read the mean of some series at no more than ``max_points`` steps; None where they share none.

    Of a longer curve, the first shared step of every stretch is taken, whatever its values: chosen by
    them, the steps would show more spread than there is.
    """
    points, series_ids = metric_points.c, [each.id for each in series]
    stop = sys.maxsize if to_step is None else to_step + 1
    found = [_measure(connection, each, from_step, stop) for each in series]
    first, last = max(row[0] for row in found), min(row[1] for row in found)
    if first > last:
        return None
    # The one with the fewest points: most of its steps are those of the others.
    sparse = min(range(len(found)), key=lambda place: found[place][2])
    is_long = found[sparse][2] > max_points
    width = -(-(last - first + 1) // max_points) if is_long else 1
    others = [each for place, each in enumerate(series_ids) if place != sparse]
    steps = _list_shared(connection, series_ids[sparse], others, first, last, width)
    if not steps:
        return None
    rows = connection.execute(
        select(points.step, points.value).where(points.series_id.in_(series_ids), points.step.in_(steps))
    )
    values: dict[int, list[float | None]] = {step: [] for step in steps}
    for step, value in rows:
        values[step].append(value)
    told = {step: _describe(values[step], len(series)) for step in steps}
    found_there = [(step, *each) for step, each in told.items() if each is not None]
    if not found_there:
        return None
    return MeanCurve(
        steps=[step for step, _, _ in found_there],
        means=[mean for _, mean, _ in found_there],
        deviations=[deviation for _, _, deviation in found_there],
        stride=width,
    )


def _describe(values: Sequence[float | None], count: int) -> tuple[float, float] | None:
    """Return mean and deviation of a step; None where a run has no value, or they are beyond all numbers.

    A run that resumes loses its last points, also after the shared steps were listed.
    """
    known = [value for value in values if value is not None]
    if len(known) != count:
        return None
    try:
        mean = math.fsum(known) / count
        deviation = _deviate(known, mean)
    except (OverflowError, ValueError):
        return None
    return (mean, deviation) if math.isfinite(mean) and math.isfinite(deviation) else None


def _measure(connection: Connection, series: Series, start: int, stop: int) -> tuple[int, int, int]:
    """Return the first and last step of a series in a range and its points there; (0, -1, 0) without any.

    Whole buckets are counted by their rollups: a long series has far more points than are told.
    """
    points, rollups = metric_points.c, metric_rollups.c
    low = -(-start // ROLLUP_STEPS)
    high = max(low, min(series.rest_from, stop) // ROLLUP_STEPS)
    own = points.series_id == series.id
    is_here = (own, points.step >= start, points.step < stop)
    summed = select(func.sum(rollups.count)).where(
        rollups.series_id == series.id, rollups.bucket >= low, rollups.bucket < high
    )
    # One bound on each side: of two, SQLite goes by the first and counts through all of the rest.
    before = select(func.count()).where(
        own, points.step >= start, points.step < min(stop, low * ROLLUP_STEPS)
    )
    after = select(func.count()).where(
        own, points.step >= max(start, high * ROLLUP_STEPS), points.step < stop
    )
    ends = [select(end(points.step)).where(*is_here).scalar_subquery() for end in (func.min, func.max)]
    counts = [each.scalar_subquery() for each in (summed, before, after)]
    first, last, *parts = connection.execute(select(*ends, *counts)).one()
    return (0, -1, 0) if first is None else (first, last, sum(int(part or 0) for part in parts))


def _deviate(values: Sequence[float], mean: float) -> float:
    """Return the sample's deviation; ``statistics`` reckons in fractions, which takes ten times as long."""
    return math.sqrt(math.fsum((value - mean) * (value - mean) for value in values) / (len(values) - 1))


def _list_shared(
    connection: Connection, series_id: int, others: Sequence[int], first: int, last: int, width: int
) -> list[int]:
    """List steps at which all series have a finite value; of every ``width`` steps, the first one."""
    own, other = metric_points.alias("own").c, metric_points.alias("other").c
    finite = (-sys.float_info.max, sys.float_info.max)
    also = (
        select(func.count())
        .where(other.series_id.in_(others), other.step == own.step, other.value.between(*finite))
        .scalar_subquery()
    )
    shared = (
        select(own.step)
        .where(own.series_id == series_id, own.value.between(*finite), also == len(others))
        .order_by(own.step)
    )
    if width == 1:
        query = shared.where(own.step >= first, own.step <= last)
        return list(connection.execute(query).scalars())
    stretch = select(literal(first).label("start")).cte("stretch", recursive=True)
    stretch = stretch.union_all(select(stretch.c.start + width).where(stretch.c.start + width <= last))
    of_stretch = shared.where(
        own.step >= stretch.c.start, own.step < stretch.c.start + width, own.step <= last
    )
    step = of_stretch.limit(1).correlate(stretch).scalar_subquery()
    found = connection.execute(select(step).select_from(stretch)).scalars()
    return sorted(each for each in found if each is not None)
