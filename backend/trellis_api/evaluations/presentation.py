"""Turns rows of evaluations into what clients read, with what the server decides."""

import math
from collections.abc import Sequence
from typing import Literal, cast

from sqlmodel import Session
from trellis_contracts.evaluation import BenchmarkResult
from trellis_contracts.states import ACTIVE, FINISHED, JobState

from trellis_api.benchmarks.repository import list_installing
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.references import NamedReference
from trellis_api.evaluations import repository
from trellis_api.evaluations.measured import map_measured_datasets
from trellis_api.evaluations.models import CHECKPOINT, Evaluation
from trellis_api.evaluations.orders import EvaluationRequest
from trellis_api.evaluations.repository import EvaluationFilter
from trellis_api.evaluations.schemas import EvaluationRead, EvaluationTarget, MeasuredDataset
from trellis_api.evaluations.service import read_request
from trellis_api.jobs import presentation
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import map_job_names
from trellis_api.jobs.schemas import JobRead
from trellis_api.jobs.service import RESUMABLE
from trellis_api.models.repository import map_model_names


def present(session: Session, *, evaluation: Evaluation) -> EvaluationRead:
    """Present one evaluation, with its breakdown and, while it runs, its scores so far."""
    return present_all(session, evaluations=[evaluation], has_detail=True)[0]


def list_page(
    session: Session, *, wanted: EvaluationFilter, cursor: str | None, limit: int
) -> Page[EvaluationRead]:
    """List one page of evaluations, newest first."""
    before = decode_time_position(cursor) if cursor is not None else None
    rows = repository.list_evaluations(session, wanted=wanted, before=before, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=present_all(session, evaluations=shown), next_cursor=next_cursor)


def present_all(
    session: Session, *, evaluations: Sequence[Evaluation], has_detail: bool = False
) -> list[EvaluationRead]:
    """Present several evaluations with a fixed number of queries."""
    jobs = repository.map_jobs(session, evaluations=evaluations)
    rows = [row for row in evaluations if row.job_id in jobs]
    read = presentation.present_all(session, jobs=[jobs[row.job_id] for row in rows], has_detail=has_detail)
    targets = map_targets(session, evaluations=rows)
    coming = set(list_installing(session)) if rows else set()
    datasets = map_measured_datasets(session, evaluations=rows)
    return [
        _present(
            session,
            row,
            jobs[row.job_id],
            job,
            targets[row.id],
            coming,
            datasets[row.id],
            has_detail=has_detail,
        )
        for row, job in zip(rows, read, strict=True)
    ]


def map_targets(session: Session, *, evaluations: Sequence[Evaluation]) -> dict[str, EvaluationTarget]:
    """Return the targets of some evaluations, by the evaluations' IDs."""
    jobs = repository.map_jobs(session, evaluations=evaluations)
    model_ids = {job.id: job.model_id for job in jobs.values()}
    models = map_model_names(session, model_ids=set(model_ids.values()))
    sources = {row.target_job_id for row in evaluations if row.target_job_id}
    names = map_job_names(session, job_ids=sources)
    targets = {}
    for row in evaluations:
        model_id = row.target_model_id or model_ids.get(row.job_id)
        source = row.target_job_id
        targets[row.id] = EvaluationTarget(
            kind="checkpoint" if row.target_kind == CHECKPOINT else "model",
            name=row.target_name,
            model=NamedReference(id=model_id, name=models.get(model_id)) if model_id else None,
            job=NamedReference(id=source, name=names.get(source)) if source else None,
            step=row.target_step,
        )
    return targets


def _present(
    session: Session,
    row: Evaluation,
    job: Job,
    read: JobRead,
    target: EvaluationTarget,
    coming: set[str],
    datasets: dict[str, MeasuredDataset],
    *,
    has_detail: bool,
) -> EvaluationRead:
    request, state = read_request(row), job.state
    is_stopping_for_good = state == JobState.STOPPING and row.displaced_at is None
    return EvaluationRead(
        id=row.id,
        name=row.name,
        job_id=row.job_id,
        trigger=cast(Literal["person", "training"], row.trigger),
        target=target,
        benchmarks=request.benchmarks,
        datasets=datasets,
        engine=request.engine,
        seed=request.seed,
        priority=job.priority,
        state=state,
        attempt=job.attempt,
        preempted=row.displaced_at is not None,
        pending_benchmarks=[name for name in row.benchmark_names if name in coming]
        if state == JobState.QUEUED
        else [],
        progress=read.progress,
        eta_s=read.eta_s,
        queue_position=read.queue_position,
        failure=read.failure,
        results=_results(row, has_groups=has_detail),
        partial=_partial(session, request, job) if has_detail and row.results is None else {},
        created_at=row.created_at,
        queued_at=job.queued_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        can_cancel=state not in FINISHED and not is_stopping_for_good,
        can_retry=state in RESUMABLE,
        can_delete=state not in ACTIVE,
        last_event_id=job.event_count,
    )


def _results(row: Evaluation, *, has_groups: bool) -> list[BenchmarkResult] | None:
    if row.results is None:
        return None
    kept = row.results if has_groups else [{**result, "groups": []} for result in row.results]
    return [BenchmarkResult.model_validate(result) for result in kept]


def _partial(session: Session, request: EvaluationRequest, job: Job) -> dict[str, dict[str, float | None]]:
    """Return the job's own metrics ``<label>/<metric>``; other keys are the engine's."""
    partial: dict[str, dict[str, float | None]] = {}
    labels = {order.label for order in request.benchmarks}
    for key, _step, value in metric_query.read_newest(session, job_id=job.id):
        label, _, metric = key.partition("/")
        if label in labels and metric:
            is_number = value is not None and math.isfinite(value)
            partial.setdefault(label, {})[metric] = value if is_number else None
    return partial
