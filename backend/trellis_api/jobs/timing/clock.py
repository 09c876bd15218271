"""The clock of a run: the time and the tokens that it took up to its steps, and when they ended.

Sums are taken over all steps, and the clock is thinned out afterwards: of durations that were thinned out
before, the extremes alone would be left, which are no sample of the rest.
"""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, pairwise

from sqlalchemy import Connection, func, literal, select
from sqlmodel import Session, col

from trellis_api.jobs.metrics import headline
from trellis_api.jobs.metrics.downsampling import fit_to_buckets
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups
from trellis_api.jobs.models import Job
from trellis_api.jobs.timing.models import StepTime

#: Seconds of a step, its tokens, and tokens since the start; the best of each first.
STEP_TIME_KEYS = ("timing_s/step", "perf/time_per_step", "train/time(s)")
STEP_TOKEN_KEYS = ("perf/total_num_tokens", "train/global_tokens")
TOTAL_TOKEN_KEYS = ("train/num_tokens", "num_tokens")
_KEYS = (*STEP_TIME_KEYS, *STEP_TOKEN_KEYS, *TOTAL_TOKEN_KEYS)
#: Of the steps of a clock, at most one part in so many are those around the resumes of a run.
_RESUME_PART = 4

#: When a step ended, and the attempt that ran it.
StepEnd = tuple[int, datetime, int]


@dataclass(frozen=True)
class Clock:
    """Columns of equal length; a column is None where the run did not report what it takes."""

    steps: list[int]
    elapsed_s: list[float | None] | None
    at: list[datetime | None] | None
    tokens: list[float | None] | None


@dataclass(frozen=True)
class _Range:
    """Steps from ``first`` to ``last``, of which about every ``width``-th is told."""

    first: int
    last: int
    width: int

    def list_steps(self) -> list[int]:
        """List the first step, the last one of every stretch, and the last."""
        start = self.first // self.width * self.width + self.width - 1
        return sorted({self.first, *range(start, self.last, self.width), self.last})


@dataclass(frozen=True)
class _Total:
    """What was added up to each step, growing with the steps."""

    steps: list[int]
    values: list[float]

    def at(self, step: int) -> float | None:
        """Return the total at a step, between two known ones in proportion; None outside of them."""
        place = bisect_left(self.steps, step)
        if place == len(self.steps) or (place == 0 and self.steps[0] != step):
            return None
        after = self.values[place]
        if self.steps[place] == step:
            return round(after, 6)
        start, before = self.steps[place - 1], self.values[place - 1]
        return round(before + (after - before) * (step - start) / (self.steps[place] - start), 6)


def read_clocks(
    session: Session,
    *,
    jobs: Sequence[Job],
    max_points: int,
    from_step: int | None = None,
    to_step: int | None = None,
) -> dict[str, Clock]:
    """Map jobs to their clocks of about ``max_points`` steps at most; one without any is missing.

    A clock of a part of the steps counts from the start of the run all the same.
    """
    if not jobs:
        return {}
    connection = session.connection()
    series = headline.find_many(connection, jobs=jobs, keys=_KEYS)
    found = {}
    for job in jobs:
        ids = {key: each.id for key, each in series[job.id].items()}
        first, last = _find_ends(connection, job, list(ids.values()))
        first, last = max(first, from_step or 0), last if to_step is None else min(last, to_step)
        if first > last:
            continue
        steps = _Range(first, last, _choose_width(last - first + 1, max_points))
        clock = _read(connection, job, ids, steps, max_points)
        if clock is not None:
            found[job.id] = clock
    return found


def _read(
    connection: Connection, job: Job, series: dict[str, int], steps: _Range, max_points: int
) -> Clock | None:
    ends = _read_ends(connection, job, steps, max_points // (2 * _RESUME_PART))
    elapsed = _first_of(
        _sum_up(connection, job, series[key], steps) for key in STEP_TIME_KEYS if key in series
    )
    tokens = _first_of(
        _read_total(connection, series[key], steps) for key in TOTAL_TOKEN_KEYS if key in series
    ) or _first_of(_sum_up(connection, job, series[key], steps) for key in STEP_TOKEN_KEYS if key in series)
    if not ends and elapsed is None and tokens is None:
        return None
    # Where the ends of steps are known, those that were measured: between them, a stop would be spread out.
    known = [end[0] for end in ends]
    told = [step for step in steps.list_steps() if not known or not known[0] <= step <= known[-1]]
    told = sorted({*told, *known})
    moments = {step: at for step, at, _ in ends}
    return Clock(
        steps=told,
        elapsed_s=None if elapsed is None else [elapsed.at(step) for step in told],
        at=[moments.get(step) for step in told] if ends else None,
        tokens=None if tokens is None else [tokens.at(step) for step in told],
    )


def _first_of(totals: Iterable[_Total | None]) -> _Total | None:
    return next((total for total in totals if total is not None), None)


def _choose_width(span: int, max_points: int) -> int:
    """Choose the steps from one told step to the next: from half a rollup's on, whole rollups."""
    if span <= max_points:
        return 1
    width = -(-span // (max_points - max_points // _RESUME_PART - 2))
    return fit_to_buckets(width, multiple=ROLLUP_STEPS)


def _find_ends(connection: Connection, job: Job, series_ids: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last step with anything that a clock is made of; (0, -1) without any."""
    points = metric_points.c
    firsts = [
        connection.execute(select(func.min(points.step)).where(points.series_id == each)).scalar()
        for each in series_ids
    ]
    time = select(func.min(StepTime.step)).where(col(StepTime.job_id) == job.id)
    known = [step for step in (*firsts, connection.execute(time).scalar()) if step is not None]
    return (min(known), job.metric_step) if known else (0, -1)


# -- sums ----------------------------------------------------------------------------------

#: The last step of a stretch, how many of its steps were measured, and their sum.
Stretch = tuple[int, int, float]


def _sum_up(connection: Connection, job: Job, series_id: int, steps: _Range) -> _Total | None:
    """Add up a value of each step, from the first step that was ever measured.

    A step without a value counts as much as the others of its stretch: some trainers tell the mean of the
    steps since they last did.
    """
    points = metric_points.c
    query = select(points.step).where(points.series_id == series_id).order_by(points.step).limit(2)
    firsts = list(connection.execute(query).scalars())
    if not firsts:
        return None
    complete = max(job.metric_step, 0) // ROLLUP_STEPS
    low = min(steps.first // ROLLUP_STEPS, complete)
    stretches = _read_rollups(connection, series_id, 0, low, max(low, 1))
    if steps.width >= ROLLUP_STEPS:
        high = max(low, min((steps.last + 1) // ROLLUP_STEPS, complete))
        stretches += _read_rollups(connection, series_id, low, high, steps.width // ROLLUP_STEPS)
        low = high
    stretches += _read_points(connection, series_id, low * ROLLUP_STEPS, steps.last + 1, steps.width)
    if not stretches:
        return None
    gap = firsts[1] - firsts[0] if len(firsts) > 1 else 1
    begin = firsts[0] - min(gap, max(firsts[0], 1))
    places = [begin, *(end for end, _, _ in stretches)]
    parts = [
        total / count * (end - start) for start, (end, count, total) in zip(places, stretches, strict=False)
    ]
    return _Total(places, [0.0, *accumulate(parts)])


def _read_rollups(connection: Connection, series_id: int, low: int, high: int, size: int) -> list[Stretch]:
    """Read the sums of buckets, ``size`` of them in a stretch; what they cannot tell, from the points."""
    if high <= low:
        return []
    columns = metric_rollups.c
    stretch = columns.bucket // size
    rows = connection.execute(
        select(
            stretch,
            func.sum(columns.count),
            func.sum(columns.sum),
            func.count() - func.count(columns.sum) + func.count(columns.odd_step),
        )
        .where(columns.series_id == series_id, columns.bucket >= low, columns.bucket < high)
        .group_by(stretch)
        .order_by(stretch)
    ).all()
    found: list[Stretch] = []
    for place, count, total, unknown in rows:
        start, stop = max(place * size, low) * ROLLUP_STEPS, min((place + 1) * size, high) * ROLLUP_STEPS
        if unknown:
            found += _read_points(connection, series_id, start, stop, size * ROLLUP_STEPS)
        else:
            found.append((stop - 1, int(count), total))
    return found


def _read_points(connection: Connection, series_id: int, start: int, stop: int, width: int) -> list[Stretch]:
    """Add up the finite points of every ``width`` steps."""
    points = metric_points.c
    is_asked = (
        points.series_id == series_id,
        points.step >= start,
        points.step < stop,
        points.value.between(-sys.float_info.max, sys.float_info.max),
    )
    if width == 1:
        query = select(points.step, literal(1), points.value).where(*is_asked).order_by(points.step)
        return [tuple(row) for row in connection.execute(query)]
    stretch = points.step // width
    grouped = select(func.max(points.step), func.count(), func.sum(points.value)).where(*is_asked)
    return [tuple(row) for row in connection.execute(grouped.group_by(stretch).order_by(stretch))]


def _read_total(connection: Connection, series_id: int, steps: _Range) -> _Total | None:
    """Read a total that the trainer adds up itself, at the last measured step of every stretch."""
    points = metric_points.c
    # The last one before the steps that are asked for: in between, a total grows in proportion.
    before = select(func.max(points.step)).where(points.series_id == series_id, points.step <= steps.first)
    start = connection.execute(before).scalar()
    is_asked = (
        points.series_id == series_id,
        points.step >= (steps.first if start is None else start),
        points.step <= steps.last,
        points.value.between(-sys.float_info.max, sys.float_info.max),
    )
    chosen = select(func.max(points.step)).where(*is_asked).group_by(points.step // steps.width)
    is_told = points.step.in_(chosen) | (points.step == start)
    query = select(points.step, points.value).where(*is_asked, is_told)
    rows = connection.execute(query.order_by(points.step)).all()
    return _Total([row[0] for row in rows], [row[1] for row in rows]) if rows else None


# -- moments -------------------------------------------------------------------------------


def _read_ends(connection: Connection, job: Job, steps: _Range, most_resumes: int) -> list[StepEnd]:
    """Read when the steps to tell ended, and those around the newest resumes, between which nothing ran."""
    ends = _read_moments(connection, job, steps)
    if job.attempt == 1 or steps.width == 1:
        return ends
    resumed = [(before[0], after[0]) for before, after in pairwise(ends) if before[2] != after[2]]
    found = {end[0]: end for end in ends}
    for before, after in resumed[-most_resumes:]:
        rows = _list_moments(connection, job, before, after)
        for last, first in pairwise(rows):
            if last[2] != first[2]:
                found |= {last[0]: last, first[0]: first}
    return [found[step] for step in sorted(found)]


def _read_moments(connection: Connection, job: Job, steps: _Range) -> list[StepEnd]:
    if steps.width == 1:
        return _list_moments(connection, job, steps.first, steps.last)
    table = StepTime.__table__.c  # type: ignore[attr-defined]
    start = steps.first // steps.width * steps.width + steps.width - 1
    asked = select(literal(start).label("step")).cte("asked", recursive=True)
    asked = asked.union_all(select(asked.c.step + steps.width).where(asked.c.step + steps.width < steps.last))
    chosen = select(asked.c.step).union(select(literal(steps.first)), select(literal(steps.last))).subquery()
    query = select(table.step, table.at, table.attempt).join(
        chosen, (table.job_id == job.id) & (table.step == chosen.c.step)
    )
    rows = [tuple(row) for row in connection.execute(query.order_by(table.step))]
    if 2 * len(rows) > len(steps.list_steps()):
        return rows
    # A trainer that reports every tenth step, say: the first one, and the last one of every stretch.
    is_asked = (table.job_id == job.id, table.step >= steps.first, table.step <= steps.last)
    first = select(func.min(table.step)).where(*is_asked)
    last = select(func.max(table.step)).where(*is_asked).group_by(table.step // steps.width)
    query = select(table.step, table.at, table.attempt).where(
        table.job_id == job.id, table.step.in_(first.union(last))
    )
    return [tuple(row) for row in connection.execute(query.order_by(table.step))]


def _list_moments(connection: Connection, job: Job, first: int, last: int) -> list[StepEnd]:
    table = StepTime.__table__.c  # type: ignore[attr-defined]
    query = select(table.step, table.at, table.attempt).where(
        table.job_id == job.id, table.step >= first, table.step <= last
    )
    return [tuple(row) for row in connection.execute(query.order_by(table.step))]
