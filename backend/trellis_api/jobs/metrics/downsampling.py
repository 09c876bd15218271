"""Makes a long curve short without losing an extreme: pure arithmetic on points and bucket sums.

Every stretch of steps is told by its least and its greatest value, in their true
order and at their true steps (the M4 aggregation of Jugel et al., VLDB 2014, less the
points that a line chart of this density cannot show).
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

#: A step and its value; None stands for NaN.
Point = tuple[int, float | None]


@dataclass(slots=True)
class Bucket:
    """What is kept of a stretch of points."""

    count: int = 0
    min_step: int | None = None
    min_value: float | None = None
    max_step: int | None = None
    max_value: float | None = None
    #: The first point that is no finite number.
    odd_step: int | None = None
    odd_value: float | None = None
    #: Of the finite values; buckets that are read for a curve come without.
    sum: float = 0.0

    def add(self, step: int, value: float | None) -> None:
        """Take in one point; points come in the order of their steps."""
        self.count += 1
        if value is None or not math.isfinite(value):
            if self.odd_step is None:
                self.odd_step, self.odd_value = step, value
            return
        self.sum += value
        if self.min_value is None or value < self.min_value:
            self.min_step, self.min_value = step, value
        if self.max_value is None or value > self.max_value:
            self.max_step, self.max_value = step, value

    def merge(self, other: "Bucket") -> None:
        """Take in a later bucket."""
        self.count += other.count
        self.sum += other.sum
        if other.min_value is not None and (self.min_value is None or other.min_value < self.min_value):
            self.min_step, self.min_value = other.min_step, other.min_value
        if other.max_value is not None and (self.max_value is None or other.max_value > self.max_value):
            self.max_step, self.max_value = other.max_step, other.max_value
        if self.odd_step is None and other.odd_step is not None:
            self.odd_step, self.odd_value = other.odd_step, other.odd_value

    def points(self) -> list[Point]:
        """Return the points to keep, in the order of their steps."""
        kept: dict[int, float | None] = {}
        if self.min_step is not None:
            kept[self.min_step] = self.min_value
        if self.max_step is not None:
            kept[self.max_step] = self.max_value
        if self.odd_step is not None:
            kept[self.odd_step] = self.odd_value
        return sorted(kept.items(), key=lambda point: point[0])


def choose_width(*, span: int, max_points: int, has_odd: bool, multiple: int) -> int:
    """Choose the steps per bucket so that the curve fits in ``max_points`` with its first and last point."""
    points_each = 3 if has_odd else 2
    # One bucket more than fits evenly may be cut at each end.
    room = max(1, (max_points - 2) // points_each - 1)
    return fit_to_buckets(max(1, math.ceil(span / room)), multiple=multiple)


def fit_to_buckets(width: int, *, multiple: int) -> int:
    """Widen a stretch of steps from half of ``multiple`` on to a multiple of it, made of stored buckets.

    Half as many points cost far less than reading each single one.
    """
    return width if 2 * width < multiple else math.ceil(width / multiple) * multiple


@dataclass(frozen=True)
class Columns:
    """Least and greatest values of stretches in order, all of them finite; of points, both are the value."""

    starts: Sequence[int]
    min_steps: Sequence[int]
    min_values: Sequence[float]
    max_steps: Sequence[int]
    max_values: Sequence[float]

    def reduce(self, *, width: int) -> dict[int, float]:
        """Return the least and the greatest value of every ``width`` steps by their steps."""
        kept: dict[int, float] = {}
        begin, end = 0, len(self.starts)
        while begin < end:
            stop = bisect_left(self.starts, (self.starts[begin] // width + 1) * width, begin)
            low = self.min_values.index(min(self.min_values[begin:stop]), begin)
            high = self.max_values.index(max(self.max_values[begin:stop]), begin)
            kept[self.min_steps[low]] = self.min_values[low]
            kept[self.max_steps[high]] = self.max_values[high]
            begin = stop
        return kept


def reduce_points(points: Iterable[Point], *, width: int) -> Iterator[Bucket]:
    """Sum up points, which come in the order of their steps, in buckets of ``width`` steps."""
    bucket, current = Bucket(), None
    for step, value in points:
        index = step // width
        if index != current:
            if current is not None:
                yield bucket
            bucket, current = Bucket(), index
        bucket.add(step, value)
    if current is not None:
        yield bucket


def reduce_buckets(buckets: Iterable[tuple[int, Bucket]], *, width: int) -> Iterator[Bucket]:
    """Put buckets, which come with a step of theirs and in order, together to larger ones."""
    merged, current = Bucket(), None
    for step, bucket in buckets:
        index = step // width
        if index != current:
            if current is not None:
                yield merged
            merged, current = Bucket(), index
        merged.merge(bucket)
    if current is not None:
        yield merged


def collect(buckets: Iterable[Bucket], *, first: Point, last: Point) -> list[Point]:
    """Collect the kept points of all buckets, with the curve's first and last point."""
    kept = dict([first, last])
    for bucket in buckets:
        kept.update(bucket.points())
    return sorted(kept.items(), key=lambda point: point[0])
