"""Reads curves: whole where they are short, as the extremes of every stretch where they are long."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Select, func, select
from sqlmodel import Session

from trellis_api.jobs.metrics.downsampling import (
    Bucket,
    Columns,
    Point,
    choose_width,
    collect,
    reduce_buckets,
    reduce_points,
)
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups, metric_series
from trellis_api.jobs.models import Job


@dataclass(frozen=True)
class Curve:
    """Points of one metric, in the order of their steps."""

    key: str
    points: list[Point]
    total_points: int
    #: Steps of one stretch whose extremes are told; 1 for a complete curve.
    width: int = 1

    @property
    def is_downsampled(self) -> bool:
        """Whether points were left out."""
        return len(self.points) < self.total_points


@dataclass(frozen=True)
class _Range:
    """Half-open range of steps."""

    start: int
    stop: int


def name_non_finite(value: float | None) -> Literal["nan", "inf", "-inf"] | None:
    """Name the kind of non-finite number that a stored value stands for; None for a finite number."""
    if value is None or math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return None


def find_series(connection: Connection, *, job_id: str, keys: Sequence[str] | None = None) -> dict[str, int]:
    """Return the IDs of a job's series by key, in the order of the keys; all, or those of the given keys."""
    statement = (
        select(metric_series.c.key, metric_series.c.id)
        .where(metric_series.c.job_id == job_id)
        .order_by(metric_series.c.key)
    )
    if keys is not None:
        statement = statement.where(metric_series.c.key.in_(keys))
    return dict(connection.execute(statement).all())


def read_curves(
    session: Session,
    *,
    job: Job,
    keys: Sequence[str] | None,
    max_points: int,
    from_step: int | None = None,
    to_step: int | None = None,
) -> list[Curve]:
    """Return the curves of the given keys (None: all), each with at most ``max_points`` points.

    Unknown keys are passed over. Every stretch keeps its least and greatest value and its
    first value that is no number; the first and last point are always there.
    """
    connection = session.connection()
    found = find_series(connection, job_id=job.id, keys=keys)
    asked = _Range(from_step or 0, job.metric_step + 1 if to_step is None else to_step + 1)
    curves = []
    for key in found if keys is None else [key for key in dict.fromkeys(keys) if key in found]:
        points, total, width = _read_curve(connection, found[key], asked, job.metric_step, max_points)
        curves.append(Curve(key=key, points=points, total_points=total, width=width))
    return curves


def read_newest(session: Session, *, job_id: str) -> list[tuple[str, int, float | None]]:
    """Read every key of a job with its last step and value."""
    # A second name for the table: the inner query must not be taken for a part of the outer one.
    points = metric_points.alias("newest")
    newest_step = (
        select(points.c.step)
        .where(points.c.series_id == metric_series.c.id)
        .order_by(points.c.step.desc())
        .limit(1)
        .scalar_subquery()
    )
    statement = (
        select(metric_series.c.key, metric_points.c.step, metric_points.c.value)
        .join(metric_points, metric_points.c.series_id == metric_series.c.id)
        .where(metric_series.c.job_id == job_id, metric_points.c.step == newest_step)
        .order_by(metric_series.c.key)
    )
    return list(session.connection().execute(statement))


def _read_curve(
    connection: Connection, series_id: int, asked: _Range, metric_step: int, max_points: int
) -> tuple[list[Point], int, int]:
    """Read a curve, how many points it has, and the steps of a stretch.

    Whole buckets come from the rollups, the ends of the range from the points.
    """
    complete = max(metric_step, 0) // ROLLUP_STEPS
    low = -(-asked.start // ROLLUP_STEPS)
    high = max(low, min(asked.stop // ROLLUP_STEPS, complete))
    middle = _Range(low * ROLLUP_STEPS, high * ROLLUP_STEPS)
    head = _read_points(connection, series_id, _Range(asked.start, min(middle.start, asked.stop)))
    tail = _read_points(connection, series_id, _Range(max(middle.stop, asked.start), asked.stop))
    count, odd_count = _count(connection, series_id, low, high)
    total = len(head) + len(tail) + count
    if total <= max_points:
        points = _read_points(connection, series_id, middle) if count else []
        return [*head, *points, *tail], total, 1
    ends = [*head, *tail]
    if count and not head:
        ends.append(_read_end(connection, series_id, middle, is_last=False))
    if count and not tail:
        ends.append(_read_end(connection, series_id, middle, is_last=True))
    first, last = min(ends, key=_step_of), max(ends, key=_step_of)
    has_odd = odd_count > 0 or not all(map(_is_finite, ends))
    width = choose_width(
        span=last[0] - first[0] + 1, max_points=max_points, has_odd=has_odd, multiple=ROLLUP_STEPS
    )
    if width < ROLLUP_STEPS:
        points = [*head, *_read_points(connection, series_id, middle), *tail]
        if has_odd:
            return collect(reduce_points(points, width=width), first=first, last=last), total, width
        steps, values = (list(column) for column in zip(*points, strict=True))
        kept = Columns(steps, steps, values, steps, values).reduce(width=width)
    elif has_odd:
        rollups = _read_rollups(connection, series_id, low, high)
        parts = [*_as_buckets(head), *rollups, *_as_buckets(tail)]
        return collect(reduce_buckets(parts, width=width), first=first, last=last), total, width
    else:
        rows: list[Any] = [(step, step, value, step, value) for step, value in head]
        rows += _read_extremes(connection, series_id, low, high)
        rows += ((step, step, value, step, value) for step, value in tail)
        kept = Columns(*(list(column) for column in zip(*rows, strict=True))).reduce(width=width)
    return sorted((kept | dict([first, last])).items()), total, width


def _is_finite(point: Point) -> bool:
    return point[1] is not None and math.isfinite(point[1])


def _step_of(point: Point) -> int:
    return point[0]


def _as_buckets(points: list[Point]) -> list[tuple[int, Bucket]]:
    buckets = []
    for step, value in points:
        bucket = Bucket()
        bucket.add(step, value)
        buckets.append((step, bucket))
    return buckets


def _in_range(series_id: int, steps: _Range) -> Select[int, float | None]:
    return select(metric_points.c.step, metric_points.c.value).where(
        metric_points.c.series_id == series_id,
        metric_points.c.step >= steps.start,
        metric_points.c.step < steps.stop,
    )


def _read_points(connection: Connection, series_id: int, steps: _Range) -> list[Point]:
    if steps.stop <= steps.start:
        return []
    return _fetch(connection, _in_range(series_id, steps).order_by(metric_points.c.step))


def _count(connection: Connection, series_id: int, low: int, high: int) -> tuple[int, int]:
    """Return how many points some buckets have, and how many buckets have one that is no number."""
    if high <= low:
        return 0, 0
    columns = metric_rollups.c
    count, odd_count = connection.execute(
        select(func.sum(columns.count), func.count(columns.odd_step)).where(
            columns.series_id == series_id, columns.bucket >= low, columns.bucket < high
        )
    ).one()
    return int(count or 0), odd_count


def _read_extremes(
    connection: Connection, series_id: int, low: int, high: int
) -> list[tuple[int, int, float, int, float]]:
    """Read what ``Columns`` are made of, from buckets in which all points are numbers."""
    if high <= low:
        return []
    columns = metric_rollups.c
    query = (
        select(
            (columns.bucket * ROLLUP_STEPS).label("start"),
            *(columns.min_step, columns.min_value, columns.max_step, columns.max_value),
        )
        .where(columns.series_id == series_id, columns.bucket >= low, columns.bucket < high)
        .order_by(columns.bucket)
    )
    return _fetch(connection, query)


def _fetch(connection: Connection, query: Select[*tuple[Any, ...]]) -> list[Any]:
    """Return the driver's own tuples: of tens of thousands of rows, SQLAlchemy's take most of the time."""
    found = connection.execute(query)
    cursor = found.cursor
    if cursor is None:
        raise TypeError("a query has a cursor")
    rows = list(cursor.fetchall())
    found.close()
    return rows


def _read_end(connection: Connection, series_id: int, steps: _Range, *, is_last: bool) -> Point:
    order = metric_points.c.step.desc() if is_last else metric_points.c.step
    return connection.execute(_in_range(series_id, steps).order_by(order).limit(1)).one()


def _read_rollups(connection: Connection, series_id: int, low: int, high: int) -> list[tuple[int, Bucket]]:
    if high <= low:
        return []
    columns = metric_rollups.c
    rows = connection.execute(
        select(
            columns.bucket,
            columns.count,
            columns.min_step,
            columns.min_value,
            columns.max_step,
            columns.max_value,
            columns.odd_step,
            columns.odd_value,
        )
        .where(columns.series_id == series_id, columns.bucket >= low, columns.bucket < high)
        .order_by(columns.bucket)
    ).all()
    return [(row[0] * ROLLUP_STEPS, Bucket(*row[1:])) for row in rows]
