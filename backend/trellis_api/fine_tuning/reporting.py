"""Metrics of a fine-tuning job for Weights & Biases: whether they can be sent, and which have not been.

A worker sends them (``trellis_workers/fine_tuning/wandb_reports.py``). The key is a setting and in no job.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import Any

from sqlalchemy import or_, select
from sqlmodel import Session, col
from sqlmodel import select as select_rows
from trellis_contracts.states import FINISHED

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.fine_tuning import repository
from trellis_api.fine_tuning.errors import FineTuningRefused
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.requests import FineTuningCreate, WandbSettings
from trellis_api.jobs.metric_tables import metric_points, metric_series
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import find_job

WANDB = "wandb"
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
    #: Of the job. W&B refuses older steps, so what ran again after a resume needs a run of its own.
    attempt: int
    config: dict[str, Any]
    #: By step, under the engine's own names.
    steps: list[tuple[int, dict[str, float]]]
    #: Whether nothing will follow.
    is_last: bool


def refuse_unsupported(request: FineTuningCreate, settings: Settings) -> None:
    """Raise ``FineTuningRefused`` for other services than Weights & Biases, and where it isn't set up."""
    for place, integration in enumerate(request.integrations or []):
        param = f"integrations.{place}"
        if integration.type != WANDB:
            raise FineTuningRefused(
                f"{param}: '{integration.type}' is not supported; 'wandb' is.", {"param": f"{param}.type"}
            )
        if integration.wandb is None:
            raise FineTuningRefused(
                f"{param}: 'wandb' with a project is needed.", {"param": f"{param}.wandb"}
            )
        if place > 0:
            raise FineTuningRefused(f"{param}: one integration is supported.", {"param": param})
        if settings.wandb_api_key is None:
            raise FineTuningRefused(
                f"{param}: Weights & Biases isn't set up. Set TRELLIS_WANDB_API_KEY for the API and the "
                "workers, or read the metrics from the job's events or its page.",
                {"param": f"{param}.type"},
            )
        if find_spec(WANDB) is None:
            raise FineTuningRefused(
                f"{param}: the package wandb isn't installed. Run pip install wandb where the workers run.",
                {"param": f"{param}.type"},
            )


def list_unreported(session: Session, *, now: datetime) -> Sequence[str]:
    """Ids of jobs with metrics to send, now or later: those first that have waited longest."""
    due_at = col(FineTuningJob.report_due_at)
    query = select_rows(FineTuningJob.id).where(
        col(FineTuningJob.reports_to).is_not(None),
        col(FineTuningJob.reported_at).is_(None),
        col(FineTuningJob.job_id).is_not(None),
        or_(due_at.is_(None), due_at <= now),
    )
    return session.exec(query.order_by(due_at.asc().nulls_first(), col(FineTuningJob.created_at))).all()


def read_report(session: Session, *, job_id: str) -> Report | None:
    """What has not been sent; None where there is nothing new."""
    row = repository.find_job(session, job_id=job_id)
    job = find_job(session, job_id=row.job_id) if row is not None and row.job_id else None
    if row is None or job is None or row.reports_to is None:
        return None
    request = FineTuningCreate.model_validate(row.request)
    wandb = next((each.wandb for each in request.integrations or [] if each.wandb is not None), None)
    if wandb is None:
        return None
    steps, is_all = _read_steps(session, job, after=row.reported_step)
    is_last = is_all and job.state in FINISHED and row.paused_at is None
    if not steps and not is_last:
        return None
    config = {"recipe": job.recipe, "model": request.model, "seed": row.seed, **job.params}
    return Report(wandb, job.attempt, config, steps, is_last)


def note_sent(session: Session, *, job_id: str, report: Report) -> None:
    """It is there; nothing is noted where the job was resumed meanwhile, which may send steps twice."""
    row = repository.lock_job(session, job_id=job_id)
    job = find_job(session, job_id=row.job_id) if row is not None and row.job_id else None
    if row is None or job is None or job.attempt != report.attempt:
        return
    if report.steps:
        row.reported_step = report.steps[-1][0]
    row.reported_at, row.report_error = utc_now() if report.is_last else None, None
    row.report_failures, row.report_due_at = 0, utc_now()
    repository.add(session, row)


def note_failure(session: Session, *, job_id: str, reason: str) -> None:
    """It could not be sent; it is tried again, ever later, until ``GIVE_UP_AFTER`` the job's end."""
    row = repository.lock_job(session, job_id=job_id)
    if row is None:
        return
    now = utc_now()
    job = find_job(session, job_id=row.job_id) if row.job_id else None
    wait = min(_FIRST_WAIT * 2 ** min(row.report_failures, 10), _LONGEST_WAIT)
    row.report_error, row.report_due_at = reason[:500], now + wait
    row.report_failures += 1
    if job is not None and job.finished_at is not None and now - job.finished_at >= GIVE_UP_AFTER:
        row.reported_at = now
    repository.add(session, row)


def _read_steps(
    session: Session, job: Job, *, after: int | None
) -> tuple[list[tuple[int, dict[str, float]]], bool]:
    """Whole steps in their order, and whether these are all; the step that the limit cuts waits."""
    query = (
        select(metric_points.c.step, metric_series.c.key, metric_points.c.value)
        .join(metric_series, metric_series.c.id == metric_points.c.series_id)
        .where(metric_series.c.job_id == job.id, metric_points.c.step > (-1 if after is None else after))
        .order_by(metric_points.c.step)
        .limit(_MAX_POINTS)
    )
    steps: dict[int, dict[str, float]] = {}
    points = session.connection().execute(query).all()
    for step, key, value in points:
        if value is not None:
            steps.setdefault(int(step), {})[str(key)] = float(value)
    is_all = len(points) < _MAX_POINTS
    if not is_all and len(steps) > 1:
        steps.pop(int(points[-1][0]), None)
    # The newest step of a run that goes on may still get figures, which W&B takes in order only.
    if job.state not in FINISHED and steps:
        steps.pop(max(steps))
    return sorted(steps.items()), is_all
