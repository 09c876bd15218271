"""Reads what a job reported."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from sqlmodel import Session

from trellis_api.jobs import log_store, metric_query, repository, rollout_store, service
from trellis_api.jobs.errors import ManifestNotFound, RolloutNotFound
from trellis_api.jobs.models import LogLine, RolloutSample
from trellis_api.jobs.rollout_pages import Mark, Position, RolloutFilter, RolloutOrder, arrange, cut
from trellis_api.jobs.schemas import (
    LogLineRead,
    LogPage,
    ManifestRead,
    MetricKey,
    MetricSeries,
    MetricsRead,
    NonFinitePoint,
    RolloutPage,
    RolloutRead,
    RolloutStep,
    RolloutSummary,
    Split,
)


def read_metrics(
    session: Session,
    *,
    job_id: str,
    keys: Sequence[str] | None,
    max_points: int,
    from_step: int | None,
    to_step: int | None,
) -> MetricsRead:
    """Curves, and the position in the event stream from which they continue."""
    job = service.get_job(session, job_id=job_id)
    # Read before the points: what is written in between is streamed once more, not lost.
    position = job.event_count
    curves = metric_query.read_curves(
        session, job=job, keys=keys, max_points=max_points, from_step=from_step, to_step=to_step
    )
    return MetricsRead(series=[present_curve(curve) for curve in curves], last_event_id=position)


def list_metric_keys(session: Session, *, job_id: str) -> list[MetricKey]:
    """Every reported key with its newest value."""
    service.get_job(session, job_id=job_id)
    return [
        MetricKey(key=key, last_step=step, last_value=rollout_store.finite(value))
        for key, step, value in metric_query.read_newest(session, job_id=job_id)
    ]


def read_logs(session: Session, *, job_id: str, after: int | None, limit: int) -> LogPage:
    """Lines behind ``after``, or the last ones."""
    job = service.get_job(session, job_id=job_id)
    if after is None:
        rows = log_store.read_last(session, job=job, limit=limit)
    else:
        rows = log_store.read_after(session, job_id=job_id, after=after, limit=limit)
    next_after = rows[-1].line if rows else (after if after is not None else job.line_count)
    lines = [present_line(row) for row in rows]
    return LogPage(lines=lines, next_after=next_after, total_lines=max(job.line_count, next_after))


def present_line(row: LogLine) -> LogLineRead:
    """A line as clients read it."""
    stream = cast(Literal["stdout", "stderr", "platform"], row.stream)
    return LogLineRead(line=row.line, attempt=row.attempt, stream=stream, time=row.time, text=row.text)


def read_rollouts(
    session: Session,
    *,
    job_id: str,
    step: int | None,
    split: Split,
    wanted: RolloutFilter,
    order: RolloutOrder,
    cursor: str | None,
    limit: int,
    has_trajectories: bool = False,
) -> RolloutPage:
    """A page of the sampled responses of a step; empty where there are none."""
    after = Position.decode(cursor) if cursor else None
    # A page without a step goes on with that of the page before, whatever came meanwhile.
    step, marks = _read_marks(session, job_id=job_id, step=after.step if after else step, split=split)
    fitting = [place for place in arrange(marks, order) if wanted.fits(place[1])]
    shown, has_more = cut(fitting, after=after.key if after else None, limit=limit)
    rows = rollout_store.read(session, ids=[mark.id for _, mark in shown], has_trajectories=has_trajectories)
    numbers = _number(marks)
    return RolloutPage(
        step=step,
        split=split,
        total=len(fitting),
        items=[present_rollout(row, numbers, has_trajectory=has_trajectories) for row in rows],
        next_cursor=Position(step, shown[-1][0]).encode() if has_more else None,
    )


def summarise_rollouts(session: Session, *, job_id: str, step: int | None, split: Split) -> RolloutSummary:
    """What all responses of a step have in common, without their texts."""
    step, marks = _read_marks(session, job_id=job_id, step=step, split=split)
    reasons = Counter(mark.stop_reason for mark in marks if mark.stop_reason is not None)
    return RolloutSummary(
        step=step,
        split=split,
        total=len(marks),
        scores=[mark.score for mark in marks if mark.score is not None],
        stop_reasons=dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0]))),
    )


def read_rollout(session: Session, *, job_id: str, rollout_id: int) -> RolloutRead:
    """One sampled response with its trajectory."""
    service.get_job(session, job_id=job_id)
    row = rollout_store.find(session, job_id=job_id, rollout_id=rollout_id)
    marks = rollout_store.list_marks(session, job_id=job_id, step=row.step, split=row.split) if row else []
    numbers = _number(marks)
    # A newer attempt may replace the responses of the step between the two reads.
    if row is None or rollout_id not in numbers:
        raise RolloutNotFound(f"Rollout {rollout_id} not found; it may have been deleted.")
    return present_rollout(row, numbers, has_trajectory=True)


def _read_marks(
    session: Session, *, job_id: str, step: int | None, split: Split
) -> tuple[int, Sequence[Mark]]:
    """The step that is asked for, else the newest, and what is short of its responses."""
    service.get_job(session, job_id=job_id)
    if step is None:
        step = rollout_store.find_newest_step(session, job_id=job_id, split=split) or 0
    return step, rollout_store.list_marks(session, job_id=job_id, step=step, split=split)


def _number(marks: Sequence[Mark]) -> dict[int, int]:
    """The place of each response among those of its step, from 1."""
    return {mark.id: number for number, (_, mark) in enumerate(arrange(marks), 1)}


def present_rollout(
    row: RolloutSample, numbers: Mapping[int, int], *, has_trajectory: bool = False
) -> RolloutRead:
    """Return a response as clients read it; ``numbers`` has its place by its id."""
    fields = {
        name: getattr(row, name)
        for name in RolloutRead.model_fields
        # Touching a column that was left out would read it, row by row.
        if name != "number" and (has_trajectory or name != "trajectory")
    }
    return RolloutRead.model_validate({"trajectory": None, "number": numbers[row.id or 0], **fields})


def list_rollout_steps(session: Session, *, job_id: str, split: str | None) -> list[RolloutStep]:
    """Steps that have sampled responses."""
    service.get_job(session, job_id=job_id)
    return [
        RolloutStep(step=step, split=cast(Split, name), count=count, mean_score=mean)
        for step, name, count, mean in rollout_store.list_steps(session, job_id=job_id, split=split)
    ]


def read_manifest(session: Session, *, job_id: str, attempt: int | None) -> ManifestRead:
    """The manifest of an attempt, or the newest there is."""
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
    )
