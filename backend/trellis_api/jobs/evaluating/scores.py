"""What the scores of a checkpoint lead to: points on the job's curves, the best checkpoint, the stop.

They arrive late: the training is steps ahead, or over. They stand at the checkpoint's own step, under
``eval/<label>/<metric>``, and what was decided without them is decided again.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import select
from sqlmodel import Session
from trellis_contracts.evaluation import BenchmarkResult
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.evaluations.orders import EvaluateWhileTraining
from trellis_api.jobs import service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.evaluating import repository
from trellis_api.jobs.evaluating.due import read_order
from trellis_api.jobs.evaluating.keys import name_best_by, name_score
from trellis_api.jobs.evaluating.models import OPEN, DueEvaluation, DueState
from trellis_api.jobs.evaluating.plateau import find_plateau
from trellis_api.jobs.evaluating.presentation import EARLY_STOPPED, explain
from trellis_api.jobs.events import service as events
from trellis_api.jobs.events.schemas import MetricsReported
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.metrics.models import metric_points
from trellis_api.jobs.models import Job


def record(session: Session, *, job: Job, due: DueEvaluation, results: Sequence[BenchmarkResult]) -> bool:
    """Take in the scores of a checkpoint; whether the training is to stop for them.

    The caller holds the job's lock.
    """
    order = read_order(job)
    if order is None:
        raise ValueError(f"job {job.id} asked for no evaluations")
    order = _name_headlines(session, job=job, order=order, results=results)
    values = {
        name_score(result.label, score.metric): score.value for result in results for score in result.scores
    }
    metric_store.write(session, job=job, metrics=[(due.step, values)])
    finite = {key: value if math.isfinite(value) else None for key, value in values.items()}
    odd = {
        key: name
        for key, value in values.items()
        if (name := metric_query.name_non_finite(value)) is not None
    }
    reported = MetricsReported(step=due.step, values=finite, non_finite=odd)
    events.publish(session, job=job, kind="metrics", data=reported)
    problem = _find_missing(order, results)
    close(session, job=job, due=due, state=DueState.RECORDED, problem=problem)
    return _stop_on_plateau(session, job=job, order=order)


def close(
    session: Session, *, job: Job, due: DueEvaluation, state: DueState, problem: str | None = None
) -> None:
    """Note what became of the measuring; the checkpoint's files may make room from now on."""
    due.state, due.problem, due.closed_at = state.value, problem[:2000] if problem else None, utc_now()
    session.add(due)
    session.flush()
    checkpoints.apply_retention(session, job=job)
    service.announce(session, job=job)
    session.flush()


def _name_headlines(
    session: Session, *, job: Job, order: EvaluateWhileTraining, results: Sequence[BenchmarkResult]
) -> EvaluateWhileTraining:
    """Set the metric of rules that go by a benchmark's headline: the first results name it."""
    headlines = {result.label: result.headline for result in results}
    changed = dict(job.evaluate or {})
    for field, rule in (("best_by", order.best_by), ("early_stop", order.early_stop)):
        if rule is not None and rule.metric is None and rule.label in headlines:
            changed[field] = {**changed[field], "metric": headlines[rule.label]}
    if changed == job.evaluate:
        return order
    job.evaluate = changed
    job.keep_best_by = job.keep_best_by or name_best_by(changed)
    session.add(job)
    named = read_order(job)
    return named if named is not None else order


def _find_missing(order: EvaluateWhileTraining, results: Sequence[BenchmarkResult]) -> str | None:
    """Describe a rule that uses a score which the benchmark does not report; None without one."""
    given = {result.label: [score.metric for score in result.scores] for result in results}
    for field, rule in (("best_by", order.best_by), ("early_stop", order.early_stop)):
        if rule is None or rule.metric is None or rule.metric in given.get(rule.label, [rule.metric]):
            continue
        names = ", ".join(given[rule.label])
        return f"{field} goes by '{rule.metric}', which {rule.label} does not give; it gives {names}."
    return None


# -- early stop


def _stop_on_plateau(session: Session, *, job: Job, order: EvaluateWhileTraining) -> bool:
    rule = order.early_stop
    if rule is None or rule.metric is None or job.state not in {JobState.LAUNCHING, JobState.RUNNING}:
        return False
    points = _read_points(session, job=job, key=name_score(rule.label, rule.metric))
    plateau = find_plateau(
        points,
        patience=rule.patience,
        min_delta=rule.min_delta,
        mode=rule.mode,
        after_step=-1 if job.resume_step is None else job.resume_step,
    )
    if plateau is None:
        return False
    stopped = {"label": rule.label, "metric": rule.metric, **asdict(plateau)}
    job.evaluate = {**(job.evaluate or {}), "stopped": stopped}
    job.reason, job.cause = explain(stopped).en, EARLY_STOPPED
    session.add(job)
    service.request_stop(session, job_id=job.id)
    return True


def _read_points(session: Session, *, job: Job, key: str) -> list[tuple[int, float]]:
    """Return the finite scores up to the first checkpoint that is still being measured."""
    connection = session.connection()
    series = metric_query.find_series(connection, job_id=job.id, keys=[key])
    if not series:
        return []
    statement = select(metric_points.c.step, metric_points.c.value).where(
        metric_points.c.series_id == series[key]
    )
    rows = repository.list_due(session, job_id=job.id)
    first_open = min((row.step for row in rows if row.state in OPEN), default=None)
    if first_open is not None:
        statement = statement.where(metric_points.c.step < first_open)
    found = connection.execute(statement.order_by(metric_points.c.step))
    return [(step, value) for step, value in found if value is not None and math.isfinite(value)]
