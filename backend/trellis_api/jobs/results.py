"""Reads what a job reported."""

from collections.abc import Sequence
from typing import Literal, cast

from sqlmodel import Session

from trellis_api.jobs import repository, service
from trellis_api.jobs.errors import ManifestNotFound
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.models import LogLine
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.schemas import (
    LogLineRead,
    LogPage,
    ManifestRead,
    MetricKey,
    MetricSeries,
    MetricsRead,
    NonFinitePoint,
    StepClock,
)
from trellis_api.jobs.timing.clock import Clock, read_clocks


def read_metrics(
    session: Session,
    *,
    job_id: str,
    keys: Sequence[str] | None,
    max_points: int,
    from_step: int | None,
    to_step: int | None,
    with_clock: bool,
) -> MetricsRead:
    """Read curves, and the position in the event stream from which they continue."""
    job = service.get_job(session, job_id=job_id)
    # Read before the points: what is written in between is streamed once more, not lost.
    position = job.event_count
    curves = metric_query.read_curves(
        session, job=job, keys=keys, max_points=max_points, from_step=from_step, to_step=to_step
    )
    asked = [job] if with_clock else []
    clocks = read_clocks(session, jobs=asked, max_points=max_points, from_step=from_step, to_step=to_step)
    return MetricsRead(
        series=[present_curve(curve) for curve in curves],
        clock=present_clock(clocks.get(job.id)),
        last_event_id=position,
    )


def list_metric_keys(session: Session, *, job_id: str) -> list[MetricKey]:
    """List every reported key with its newest value."""
    service.get_job(session, job_id=job_id)
    return [
        MetricKey(key=key, last_step=step, last_value=rollout_store.finite(value))
        for key, step, value in metric_query.read_newest(session, job_id=job_id)
    ]


def read_logs(session: Session, *, job_id: str, after: int | None, limit: int) -> LogPage:
    """Read the lines after ``after``, or the last ones."""
    job = service.get_job(session, job_id=job_id)
    if after is None:
        rows = log_store.read_last(session, job=job, limit=limit)
    else:
        rows = log_store.read_after(session, job_id=job_id, after=after, limit=limit)
    next_after = rows[-1].line if rows else (after if after is not None else job.line_count)
    lines = [present_line(row) for row in rows]
    return LogPage(lines=lines, next_after=next_after, total_lines=max(job.line_count, next_after))


def present_line(row: LogLine) -> LogLineRead:
    """Present a log line as clients read it."""
    stream = cast(Literal["stdout", "stderr", "platform"], row.stream)
    return LogLineRead(line=row.line, attempt=row.attempt, stream=stream, time=row.time, text=row.text)


def read_manifest(session: Session, *, job_id: str, attempt: int | None) -> ManifestRead:
    """Return the manifest of an attempt, or the newest there is."""
    service.get_job(session, job_id=job_id)
    for row in reversed(repository.list_attempts(session, job_id=job_id)):
        if row.manifest is not None and attempt in (None, row.number):
            return ManifestRead(attempt=row.number, manifest=row.manifest)
    raise ManifestNotFound("The job has not written this manifest yet.")


def present_curve(curve: metric_query.Curve) -> MetricSeries:
    """Return a curve as clients read it: gaps are null, and what stands there is named."""
    non_finite = []
    values: list[float | None] = []
    for step, value in curve.points:
        name = metric_query.name_non_finite(value)
        values.append(value if name is None else None)
        if name is not None:
            non_finite.append(NonFinitePoint(step=step, value=name))
    return MetricSeries(
        key=curve.key,
        steps=[step for step, _ in curve.points],
        values=values,
        non_finite=non_finite,
        total_points=curve.total_points,
        is_downsampled=curve.is_downsampled,
        stretch_steps=curve.width,
    )


def present_clock(clock: Clock | None) -> StepClock | None:
    """Return a clock as clients read it."""
    if clock is None:
        return None
    return StepClock(steps=clock.steps, elapsed_s=clock.elapsed_s, at=clock.at, tokens=clock.tokens)
