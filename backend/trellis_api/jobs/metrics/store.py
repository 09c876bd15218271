"""Writes metric points: tens of thousands a second, each exactly once, summed up as they leave a bucket.

A rollup row exists for every bucket before the one that holds the job's highest
step. It is always built from the points themselves, never corrected, so it stays exact
when a point is written again (a resumed job runs some steps a second time).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select
from sqlmodel import Session

from trellis_api.jobs.metrics.downsampling import Bucket, reduce_points
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups, metric_series
from trellis_api.jobs.metrics.query import find_series
from trellis_api.jobs.models import Job

#: The metrics of one step: (step, values by key).
StepMetrics = tuple[int, dict[str, float]]

_UPSERT_SQLITE = (
    "INSERT INTO metric_points (series_id, step, value) VALUES (?, ?, ?) "
    "ON CONFLICT (series_id, step) DO UPDATE SET value = excluded.value"
)
_UPSERT_POSTGRESQL = (
    "INSERT INTO metric_points (series_id, step, value) "
    "SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[]) "
    "ON CONFLICT (series_id, step) DO UPDATE SET value = excluded.value"
)


def write(session: Session, *, job: Job, metrics: Sequence[StepMetrics]) -> None:
    """Keep the metrics of some steps; a step that comes again replaces what was there.

    The caller holds the job's lock.
    """
    # A batch of log lines alone asks the database nothing.
    if not any(values for _, values in metrics):
        return
    session.flush()
    connection = session.connection()
    series = _ensure_series(connection, job_id=job.id, keys={key for _, values in metrics for key in values})
    points = {
        (series[key], step): None if math.isnan(value) else value
        for step, values in metrics
        for key, value in values.items()
    }
    _upsert(connection, [(series_id, step, points[series_id, step]) for series_id, step in sorted(points)])
    highest = max(job.metric_step, max(step for step, _ in metrics))
    touched = {step // ROLLUP_STEPS for step, _ in metrics}
    if job.metric_step >= 0:
        touched.add(job.metric_step // ROLLUP_STEPS)
    _rebuild(
        connection,
        series_ids=list(series.values()),
        buckets={bucket for bucket in touched if bucket < highest // ROLLUP_STEPS},
    )
    job.metric_step = highest
    session.add(job)


def truncate(session: Session, *, job: Job, last_step: int) -> None:
    """Forget everything behind ``last_step``; -1 forgets all. The caller holds the job's lock."""
    if job.metric_step <= last_step:
        return
    session.flush()
    connection = session.connection()
    ids = select(metric_series.c.id).where(metric_series.c.job_id == job.id)
    connection.execute(
        delete(metric_points).where(metric_points.c.series_id.in_(ids), metric_points.c.step > last_step)
    )
    connection.execute(
        delete(metric_rollups).where(
            metric_rollups.c.series_id.in_(ids), metric_rollups.c.bucket >= max(last_step, 0) // ROLLUP_STEPS
        )
    )
    job.metric_step = last_step
    session.add(job)


def _ensure_series(connection: Connection, *, job_id: str, keys: set[str]) -> dict[str, int]:
    known = find_series(connection, job_id=job_id)
    missing = sorted(keys - known.keys())
    if missing:
        connection.execute(insert(metric_series), [{"job_id": job_id, "key": key} for key in missing])
        known = find_series(connection, job_id=job_id)
    return known


def _upsert(connection: Connection, rows: list[tuple[int, int, float | None]]) -> None:
    if connection.dialect.name == "postgresql":
        series, steps, values = (list(column) for column in zip(*rows, strict=True))
        connection.exec_driver_sql(_UPSERT_POSTGRESQL, (series, steps, values))
    else:
        connection.exec_driver_sql(_UPSERT_SQLITE, rows)


def _rebuild(connection: Connection, *, series_ids: list[int], buckets: set[int]) -> None:
    """Build the rollups of complete buckets anew, for all series of a job."""
    rows: list[dict[str, Any]] = []
    for low, high in _join_ranges(buckets):
        points = connection.execute(
            select(metric_points)
            .where(
                metric_points.c.series_id.in_(series_ids),
                metric_points.c.step >= low * ROLLUP_STEPS,
                metric_points.c.step < high * ROLLUP_STEPS,
            )
            .order_by(metric_points.c.series_id, metric_points.c.step)
        )
        rows += _sum_up(points)
        connection.execute(
            delete(metric_rollups).where(
                metric_rollups.c.series_id.in_(series_ids),
                metric_rollups.c.bucket >= low,
                metric_rollups.c.bucket < high,
            )
        )
    if rows:
        connection.execute(insert(metric_rollups), rows)


def _join_ranges(buckets: set[int]) -> list[tuple[int, int]]:
    """Join adjacent buckets into half-open ranges, so that each range is one query."""
    ranges: list[tuple[int, int]] = []
    for bucket in sorted(buckets):
        if ranges and ranges[-1][1] == bucket:
            ranges[-1] = (ranges[-1][0], bucket + 1)
        else:
            ranges.append((bucket, bucket + 1))
    return ranges


def _sum_up(points: Iterable[tuple[int, int, float | None]]) -> list[dict[str, Any]]:
    by_series: dict[int, list[tuple[int, float | None]]] = {}
    for series_id, step, value in points:
        by_series.setdefault(series_id, []).append((step, value))
    return [
        as_row(bucket, series_id=series_id)
        for series_id, own in by_series.items()
        for bucket in reduce_points(own, width=ROLLUP_STEPS)
    ]


def as_row(bucket: Bucket, *, series_id: int) -> dict[str, Any]:
    """Return the rollup row of a bucket."""
    a_step = next(step for step in (bucket.min_step, bucket.odd_step) if step is not None)
    return {
        "series_id": series_id,
        "bucket": a_step // ROLLUP_STEPS,
        "count": bucket.count,
        "min_step": bucket.min_step,
        "min_value": bucket.min_value,
        "max_step": bucket.max_step,
        "max_value": bucket.max_value,
        "odd_step": bucket.odd_step,
        "odd_value": bucket.odd_value,
        "sum": bucket.sum if math.isfinite(bucket.sum) else None,
    }
