"""The one metric of each job that a list shows, newest and best value, in a fixed number of queries."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, or_, select
from sqlmodel import Session
from trellis_recipes.headline_metrics import VALIDATION_PREFIX, is_unnamed, name_headlines

from trellis_api.jobs.metrics.direction import Mode, has_direction, list_headline, suit_mode
from trellis_api.jobs.metrics.downsampling import Point
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups, metric_series
from trellis_api.jobs.models import TRAIN, Job
from trellis_api.jobs.rollouts.store import finite
from trellis_api.jobs.schemas import HeadlineMetric

#: Series in one query: SQLite takes so many conditions.
_BATCH = 200


@dataclass(frozen=True)
class Series:
    """A stored curve, and from which step on its points are in no rollup."""

    id: int
    key: str
    rest_from: int
    #: Whether higher or lower is better; None where the name tells.
    stated_mode: Mode | None = None

    @property
    def mode(self) -> Mode:
        """Which end counts as the best."""
        return self.stated_mode or suit_mode(self.key)

    @property
    def direction(self) -> Mode | None:
        """Whether higher or lower is better; None where neither is."""
        return self.mode if self.stated_mode or has_direction(self.key) else None


def map_headlines(session: Session, *, jobs: Sequence[Job]) -> dict[str, list[str]]:
    """Map each training's id to its headline metrics, under the names that it reports them by."""
    headlines = {job.id: list_headline(job.recipe) for job in jobs if job.kind == TRAIN}
    unnamed = [job_id for job_id, keys in headlines.items() if any(map(is_unnamed, keys))]
    reported: dict[str, list[str]] = defaultdict(list)
    columns = metric_series.c
    statement = select(columns.job_id, columns.key).where(
        columns.job_id.in_(unnamed), columns.key.startswith(VALIDATION_PREFIX, autoescape=True)
    )
    for job_id, key in session.connection().execute(statement) if unnamed else ():
        reported[job_id].append(key)
    return {job_id: name_headlines(keys, reported[job_id]) for job_id, keys in headlines.items()}


def summarise(
    session: Session, *, jobs: Sequence[Job], metric: str | None = None
) -> dict[str, HeadlineMetric]:
    """Map each training's id to ``metric``, else to the first headline metric that it reported."""
    measured = [job for job in jobs if job.kind == TRAIN and job.metric_step >= 0]
    wanted = (
        map_headlines(session, jobs=measured) if metric is None else {job.id: [metric] for job in measured}
    )
    connection = session.connection()
    reported = find_many(connection, jobs=jobs, keys={key for keys in wanted.values() for key in keys})
    chosen: dict[str, Series] = {}
    for job_id, keys in wanted.items():
        found = next((reported[job_id][key] for key in keys if key in reported[job_id]), None)
        if found is not None:
            chosen[job_id] = found
    summaries = read_summaries(connection, list(chosen.values()))
    return {job_id: summaries[series.id] for job_id, series in chosen.items() if series.id in summaries}


def find_many(
    connection: Connection, *, jobs: Sequence[Job], keys: Iterable[str] | None
) -> dict[str, dict[str, Series]]:
    """Return the series of some jobs by job and key: those of the given keys, or all."""
    columns = metric_series.c
    statement = select(columns.job_id, columns.key, columns.id).where(
        columns.job_id.in_([job.id for job in jobs])
    )
    if keys is not None:
        statement = statement.where(columns.key.in_(sorted(keys)))
    rest_from = {job.id: max(job.metric_step, 0) // ROLLUP_STEPS * ROLLUP_STEPS for job in jobs}
    found: dict[str, dict[str, Series]] = defaultdict(dict)
    for job_id, key, series_id in connection.execute(statement):
        found[job_id][key] = Series(series_id, key, rest_from[job_id])
    return found


def read_summaries(connection: Connection, series: Sequence[Series]) -> dict[int, HeadlineMetric]:
    """Read the newest and the best value of each series by its ID; none for a series without points."""
    summaries: dict[int, HeadlineMetric] = {}
    for start in range(0, len(series), _BATCH):
        part = series[start : start + _BATCH]
        candidates = _read_rest(connection, part)
        for mode in ("min", "max"):
            ids = [each.id for each in part if each.mode == mode]
            for series_id, point in _read_extremes(connection, ids, is_least=mode == "min"):
                candidates[series_id].append(point)
        newest = _read_newest(connection, [each.id for each in part])
        summaries |= {
            each.id: _present(each, newest[each.id], candidates[each.id])
            for each in part
            if each.id in newest
        }
    return summaries


def _present(series: Series, newest: Point, candidates: Iterable[Point]) -> HeadlineMetric:
    sign = 1 if series.mode == "min" else -1
    finites = [(value, step) for step, value in candidates if value is not None and math.isfinite(value)]
    best = min(finites, key=lambda each: (sign * each[0], each[1]), default=(None, None))
    return HeadlineMetric(
        key=series.key,
        mode=series.direction,
        last=finite(newest[1]),
        last_step=newest[0],
        best=best[0],
        best_step=best[1],
    )


def _read_newest(connection: Connection, ids: Sequence[int]) -> dict[int, Point]:
    # A second name for the table: the inner query must not be taken for a part of the outer one.
    inner = metric_points.alias("newest").c
    last_step = select(func.max(inner.step)).where(inner.series_id == metric_series.c.id).scalar_subquery()
    points = metric_points.c
    statement = (
        select(points.series_id, points.step, points.value)
        .select_from(metric_series)
        .join(metric_points, and_(points.series_id == metric_series.c.id, points.step == last_step))
        .where(metric_series.c.id.in_(ids))
    )
    return {series_id: (step, value) for series_id, step, value in connection.execute(statement)}


def _read_rest(connection: Connection, series: Sequence[Series]) -> dict[int, list[Point]]:
    """Read the points that are in no rollup: fewer than ``ROLLUP_STEPS`` for each series."""
    points = metric_points.c
    found: dict[int, list[Point]] = defaultdict(list)
    if not series:
        return found
    by_start: dict[int, list[int]] = defaultdict(list)
    for each in series:
        by_start[each.rest_from].append(each.id)
    is_rest = or_(*(and_(points.series_id.in_(ids), points.step >= low) for low, ids in by_start.items()))
    for series_id, step, value in connection.execute(
        select(points.series_id, points.step, points.value).where(is_rest)
    ):
        found[series_id].append((step, value))
    return found


def _read_extremes(connection: Connection, ids: Sequence[int], *, is_least: bool) -> list[tuple[int, Point]]:
    """Read the best value in the rollups of each series, at the first step that has it."""
    columns = metric_rollups.c
    value = columns.min_value if is_least else columns.max_value
    step = columns.min_step if is_least else columns.max_step
    place = func.row_number().over(
        partition_by=columns.series_id, order_by=(value if is_least else value.desc(), step)
    )
    ranked = (
        select(columns.series_id, step.label("step"), value.label("value"), place.label("place"))
        .where(columns.series_id.in_(ids), value.is_not(None))
        .subquery()
    )
    first = select(ranked.c.series_id, ranked.c.step, ranked.c.value).where(ranked.c.place == 1)
    return [(row[0], (row[1], row[2])) for row in connection.execute(first)] if ids else []
