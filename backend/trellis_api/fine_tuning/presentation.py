"""Turns fine-tuning jobs, their checkpoints and events into what OpenAI's clients read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.errors import InvalidRequest
from trellis_api.fine_tuning import figures, repository, results
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.requests import FineTuningCreate
from trellis_api.fine_tuning.schemas import CheckpointList, CheckpointObject, JobList, JobObject
from trellis_api.fine_tuning.states import find_error, find_export, find_status
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.metrics.models import metric_points, metric_series
from trellis_api.jobs.models import Job
from trellis_api.jobs.presentation import estimate_eta_s
from trellis_api.jobs.repository import find_job
from trellis_api.models.repository import find_model_named, map_model_names

_OVER = frozenset({"succeeded", "failed", "cancelled"})


def present(session: Session, row: FineTuningJob) -> JobObject:
    """Present a job as clients see it."""
    job = find_job(session, job_id=row.job_id) if row.job_id else None
    return _present(session, row, job)


def list_page(
    session: Session,
    *,
    after: FineTuningJob | None,
    limit: int,
    conditions: Sequence[ColumnElement[bool]] = (),
) -> JobList:
    """List fine-tuning jobs, newest first."""
    rows = repository.list_rows(session, FineTuningJob, after=after, limit=limit + 1, conditions=conditions)
    shown = rows[:limit]
    jobs = repository.map_platform_jobs(session, shown)
    data = [_present(session, row, jobs.get(row.job_id or "")) for row in shown]
    return JobList(data=data, has_more=len(rows) > limit)


def list_checkpoints(
    session: Session, row: FineTuningJob, *, after: str | None, limit: int
) -> CheckpointList:
    """List the checkpoints that are still there, newest first; any of them can be requested by its name."""
    job = find_job(session, job_id=row.job_id) if row.job_id else None
    found = [] if job is None else _describe_checkpoints(session, row, job)
    if after is not None:
        places = [place for place, each in enumerate(found) if each.id == after]
        if not places:
            raise InvalidRequest(f"There is no checkpoint '{after[:64]}'.", {"param": "after"})
        found = found[places[0] + 1 :]
    shown = found[:limit]
    return CheckpointList(
        data=shown,
        first_id=shown[0].id if shown else None,
        last_id=shown[-1].id if shown else None,
        has_more=len(found) > limit,
    )


def _describe_checkpoints(session: Session, row: FineTuningJob, job: Job) -> list[CheckpointObject]:
    summary = checkpoints.summarise(session, job=job)
    there: Sequence[Any] = [each for each in summary.rows if each.pruned_at is None]
    return [
        CheckpointObject(
            id=f"ftckpt-{row.id.removeprefix('ftjob-')}-{each.step}",
            created_at=int(each.created_at.timestamp()),
            fine_tuned_model_checkpoint=f"{job.id}:{each.step}",
            fine_tuning_job_id=row.id,
            metrics={"step": float(each.step), **figures.rename(summary.metrics.get(each.step, {}))},
            step_number=each.step,
        )
        for each in sorted(there, key=lambda each: -each.step)
    ]


def _present(session: Session, row: FineTuningJob, job: Job | None) -> JobObject:
    request = FineTuningCreate.model_validate(row.request)
    export = find_export(session, job) if job else None
    status = find_status(row, job, export)
    method = request.method.model_dump(mode="json", exclude_none=True)
    settled = {**request.method.hyperparameters.model_dump(mode="json"), **row.hyperparameters}
    method[request.method.type]["hyperparameters"] = settled
    return JobObject(
        id=row.id,
        created_at=int(row.created_at.timestamp()),
        error=find_error(row, job, export),
        fine_tuned_model=_find_model_name(session, row, export) if status == "succeeded" else None,
        finished_at=_instant(_find_end(row, job, export)) if status in _OVER else None,
        hyperparameters=settled if request.method.type == "supervised" else {},
        model=request.model,
        result_files=[results.name_file(row)] if job and status in _OVER else [],
        seed=row.seed,
        status=status,
        trained_tokens=_count_tokens(session, job) if job and status == "succeeded" else None,
        training_file=request.training_file,
        validation_file=request.validation_file,
        estimated_finish=_estimate_end(job) if job and status == "running" else None,
        integrations=[each.model_dump(mode="json", exclude_none=True) for each in request.integrations or []],
        metadata=request.metadata,
        method=method,
        suffix=request.suffix,
        trellis_job_id=row.job_id,
    )


def _find_model_name(session: Session, row: FineTuningJob, export: Job | None) -> str | None:
    """Find the name of the model that the export registered; None if it was deleted since."""
    if export is None:  # the job that wrote it was deleted
        return row.tuned_name if find_model_named(session, name=row.tuned_name) else None
    model_id = str((export.export or {}).get("model_id"))
    return map_model_names(session, model_ids=[model_id]).get(model_id)


def _find_end(row: FineTuningJob, job: Job | None, export: Job | None) -> datetime | None:
    ends = [part.finished_at for part in (export, job) if part is not None]
    return next((end for end in ends if end is not None), row.finished_at or row.cancelled_at)


def _estimate_end(job: Job) -> int | None:
    left_s = estimate_eta_s(job)
    return None if left_s is None else _instant(utc_now() + timedelta(seconds=left_s))


def _count_tokens(session: Session, job: Job) -> int | None:
    """Count the tokens of all steps, if the engine reports them."""
    query = (
        select(func.sum(metric_points.c.value))
        .join(metric_series, metric_series.c.id == metric_points.c.series_id)
        .where(metric_series.c.job_id == job.id, metric_series.c.key == figures.TOKENS)
    )
    total = session.connection().execute(query).scalar()
    return None if total is None else int(total)


def _instant(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())
