"""Metrics of jobs for Weights & Biases: which have not been sent, and what became of sending them.

A worker sends them (``trellis_workers/jobs/wandb_reports.py``). The key is a setting and in no job.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, select
from sqlmodel import Session, col, update
from sqlmodel import select as select_rows
from trellis_contracts.events import LogEvent
from trellis_contracts.states import FINISHED

from trellis_api.core.columns import utc_now
from trellis_api.core.redaction import redact
from trellis_api.jobs.events import service as events
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.metrics.models import metric_points, metric_series
from trellis_api.jobs.models import Job
from trellis_api.jobs.reporting.models import JobReport
from trellis_api.jobs.reporting.schemas import JobReportRead, ReportTo, WandbSettings
from trellis_api.jobs.repository import find_job, lock_job
from trellis_api.models.repository import find_model

#: Points that are sent at once.
_MAX_POINTS = 20_000
#: Between attempts that fail: doubled each time, up to the longest.
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
#: After the job's end.
GIVE_UP_AFTER = timedelta(hours=6)


@dataclass(frozen=True)
class Report:
    """What is to be sent of one job."""

    settings: WandbSettings
    #: W&B's id of the run: all attempts of a job are one run.
    run_id: str
    name: str
    #: Runs that W&B shows together: those of a sweep, or of the job's group.
    group: str | None
    #: Of the job, when this was read.
    attempt: int
    config: dict[str, Any]
    #: By step, under the engine's own names.
    steps: list[tuple[int, dict[str, float]]]
    #: Whether nothing will follow.
    is_last: bool


def begin(session: Session, *, job: Job, wanted: ReportTo) -> None:
    """Let a job's metrics be sent; its row has been written."""
    session.add(JobReport(job_id=job.id, settings=wanted.model_dump(exclude_none=True), run_id=job.id))
    session.flush()


def read_wanted(session: Session, *, job_id: str) -> ReportTo | None:
    """Return the requested report settings of a job, or None."""
    row = session.get(JobReport, job_id)
    return None if row is None else ReportTo.model_validate(row.settings)


def find_report(session: Session, *, job_id: str) -> JobReport | None:
    """Find how far the job's metrics were sent; None if they aren't sent anywhere."""
    return session.get(JobReport, job_id, populate_existing=True)


def map_reports(session: Session, *, job_ids: Collection[str]) -> dict[str, JobReportRead]:
    """Return the reports of many jobs, as clients read them, by the jobs' IDs."""
    rows = session.exec(select_rows(JobReport).where(col(JobReport.job_id).in_(job_ids)))
    return {
        row.job_id: JobReportRead(**row.settings, url=row.url, sent_step=row.sent_step, problem=row.problem)
        for row in rows
    }


def list_unreported(session: Session, *, now: datetime) -> Sequence[str]:
    """List jobs with metrics to send, now or later, longest waiting first."""
    due_at = col(JobReport.due_at)
    query = select_rows(JobReport.job_id).join(Job, col(Job.id) == col(JobReport.job_id))
    query = query.where(col(JobReport.done_at).is_(None), or_(due_at.is_(None), due_at <= now))
    return session.exec(query.order_by(due_at.asc().nulls_first(), col(Job.created_at))).all()


def read_report(session: Session, *, job_id: str, is_whole: bool = False) -> Report | None:
    """Return the metrics that have not been sent; None if there is nothing new.

    ``is_whole``: all of them at once, and none of a job that goes on.
    """
    row, job = session.get(JobReport, job_id), find_job(session, job_id=job_id)
    if row is None or job is None or (is_whole and job.state not in FINISHED):
        return None
    wandb = ReportTo.model_validate(row.settings).wandb
    limit = None if is_whole else _MAX_POINTS
    steps, is_all = _read_steps(session, job, after=row.sent_step, limit=limit)
    is_last = is_all and job.state in FINISHED
    if not steps and not is_last:
        return None
    model = find_model(session, model_id=job.model_id)
    is_named = wandb.name is not None and job.sweep_id is None
    return Report(
        settings=wandb,
        run_id=row.run_id,
        name=str(wandb.name) if is_named else job.name,
        group=job.group if job.sweep_id is None else (wandb.name or job.sweep_id),
        attempt=job.attempt,
        config={
            "recipe": job.recipe,
            "model": model.name if model else job.model_id,
            "seed": job.seed,
            **job.params,
        },
        steps=steps,
        is_last=is_last,
    )


def note_sent(session: Session, *, job_id: str, report: Report, url: str | None) -> None:
    """Record that a report was sent; a job that was resumed meanwhile goes on."""
    job, row = lock_job(session, job_id=job_id), find_report(session, job_id=job_id)
    if row is None or job is None:
        return
    if report.steps:
        row.sent_step = max(report.steps[-1][0], -1 if row.sent_step is None else row.sent_step)
    if row.problem is not None:
        _tell(session, job, "Metrics reach Weights & Biases again.")
    if report.is_last and job.attempt == report.attempt:
        row.done_at = utc_now()
    row.url, row.problem, row.failures, row.due_at = url or row.url, None, 0, utc_now()
    session.add(row)
    session.flush()


def note_failure(session: Session, *, job_id: str, reason: str) -> None:
    """Warn in the job's log; it is tried again, ever later, until ``GIVE_UP_AFTER`` the job's end."""
    job, row = lock_job(session, job_id=job_id), find_report(session, job_id=job_id)
    if row is None or job is None:
        return
    now = utc_now()
    problem = redact(reason)[:500]
    if problem != row.problem:
        _tell(session, job, f"Warning: metrics can't be sent to Weights & Biases: {problem}")
    wait = min(_FIRST_WAIT * 2 ** min(row.failures, 10), _LONGEST_WAIT)
    row.problem, row.due_at = problem, now + wait
    row.failures += 1
    if job.finished_at is not None and now - job.finished_at >= GIVE_UP_AFTER:
        row.done_at = now
    session.add(row)
    session.flush()


def reopen(session: Session, *, job_id: str) -> None:
    """Reopen the report of a resumed job, which may have been complete or given up.

    Steps that run again are not sent again: W&B takes a step of a run once.
    """
    of_job = update(JobReport).where(col(JobReport.job_id) == job_id)
    session.exec(of_job.values(done_at=None, failures=0, due_at=None))


def _tell(session: Session, job: Job, line: str) -> None:
    """Write a line to the job's log. The caller holds the job's lock."""
    event = LogEvent(time=utc_now(), stream="platform", lines=[line])
    first, count = log_store.write(session, job=job, attempt=job.attempt, event=event)
    events.publish(session, job=job, kind="logs", data={"first": first, "count": count})


def _read_steps(
    session: Session, job: Job, *, after: int | None, limit: int | None
) -> tuple[list[tuple[int, dict[str, float]]], bool]:
    """Read whole steps in order, and whether these are all; a step that the limit cuts is left for later."""
    query = (
        select(metric_points.c.step, metric_series.c.key, metric_points.c.value)
        .join(metric_series, metric_series.c.id == metric_points.c.series_id)
        .where(metric_series.c.job_id == job.id, metric_points.c.step > (-1 if after is None else after))
        .order_by(metric_points.c.step)
        .limit(limit)
    )
    steps: dict[int, dict[str, float]] = {}
    points = session.connection().execute(query).all()
    for step, key, value in points:
        if value is not None:
            steps.setdefault(int(step), {})[str(key)] = float(value)
    is_all = limit is None or len(points) < limit
    if not is_all and len(steps) > 1:
        steps.pop(int(points[-1][0]), None)
    # The newest step of a run that goes on may still get figures, which W&B takes in order only.
    if job.state not in FINISHED and steps:
        steps.pop(max(steps))
    return sorted(steps.items()), is_all
