"""The metrics of checkpoints: what was measured of the weights of their own steps.

They are read when they are asked for, not copied when a checkpoint arrives: a trainer saves
before it logs the step's metrics, and one that is sent late or again is right here at once. A value of
another step counts for nothing: a checkpoint would be ranked by what an older one has done. The newest
training metric before a step is shown all the same, with its step, where training is not logged in every
step. Only when points are about to be removed (a resume from before the checkpoint) are metrics written to
its row, and it keeps those: what is reported from then on is of another attempt's weights.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import literal_column, select, union_all
from sqlmodel import Session

from trellis_api.jobs.evaluating.keys import list_prefixes
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.metrics.direction import is_validation, list_headline
from trellis_api.jobs.metrics.models import metric_points
from trellis_api.jobs.models import Checkpoint, Job
from trellis_api.jobs.rollouts.store import finite

Metrics = dict[str, float | None]
#: Of each checkpoint's step, by key: the earlier step at which a metric was reported last, and its value.
Earlier = dict[int, dict[str, tuple[int, float | None]]]


def read(
    session: Session, *, job: Job, checkpoints: Sequence[Checkpoint], more: Iterable[str | None] = ()
) -> dict[int, Metrics]:
    """Map each checkpoint's step to its headline and validation metrics, and those named in ``more``."""
    return read_with_earlier(session, job=job, checkpoints=checkpoints, more=more)[0]


def read_with_earlier(
    session: Session, *, job: Job, checkpoints: Sequence[Checkpoint], more: Iterable[str | None] = ()
) -> tuple[dict[int, Metrics], Earlier]:
    """Read the metrics of checkpoints, and those of training that were reported last before their steps."""
    headline = {*list_headline(job.recipe), *more}
    connection = session.connection()
    series = {
        key: number
        for key, number in metric_query.find_series(connection, job_id=job.id).items()
        if key in headline or is_validation(key)
    }
    found: dict[int, Metrics] = {row.step: {} for row in checkpoints}
    earlier: Earlier = {row.step: {} for row in checkpoints}
    steps = [row.step for row in checkpoints if row.earlier is None]
    own = list_prefixes(job)
    for key, number in series.items():
        is_exact = is_validation(key) or (bool(own) and key.startswith(own))
        for step, at, value in _read_series(session, number, steps, is_exact=is_exact):
            if at == step:
                found[step][key] = finite(value)
            else:
                earlier[step][key] = (at, finite(value))
    for row in checkpoints:
        found[row.step].update(row.metrics)
        known = earlier[row.step]
        if row.earlier is not None:
            known = {key: (at, value) for key, (at, value) in row.earlier.items()}
        earlier[row.step] = {key: at for key, at in known.items() if key not in row.metrics}
    return found, earlier


def freeze(session: Session, *, job: Job, checkpoints: Sequence[Checkpoint]) -> None:
    """Write the metrics of checkpoints to their rows: the points are about to go."""
    if not checkpoints:
        return
    found, earlier = read_with_earlier(session, job=job, checkpoints=checkpoints)
    for row in checkpoints:
        row.metrics = found[row.step]
        row.earlier = {key: list(at) for key, at in earlier[row.step].items()}
        session.add(row)
    session.flush()


def _read_series(
    session: Session, series_id: int, steps: list[int], *, is_exact: bool
) -> list[tuple[int, int, float | None]]:
    """Read the newest value at or before each step (``is_exact``: at it) and where it was measured.

    It takes one index lookup for each.
    """
    points = metric_points.c
    found: list[tuple[int, int, float | None]] = []
    for start in range(0, len(steps), 100):  # SQLite takes 500 parts of a union at most
        parts = []
        for step in steps[start : start + 100]:
            is_wanted = points.step == step if is_exact else points.step <= step
            newest = (
                select(literal_column(str(int(step))).label("asked"), points.step.label("at"), points.value)
                .where(points.series_id == series_id, is_wanted)
                .order_by(points.step.desc())
                .limit(1)
                .subquery()
            )
            parts.append(select(newest.c.asked, newest.c.at, newest.c.value))
        found += [(row[0], row[1], row[2]) for row in session.connection().execute(union_all(*parts))]
    return found
