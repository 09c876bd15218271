"""Turns rows of jobs into what clients read, with what the server decides: actions, ETA, place in line."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlmodel import Session
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.core.pagination import cut_page, decode_time_position
from trellis_api.core.pricing import Cost, SlotPrice
from trellis_api.core.references import NamedReference
from trellis_api.datasets.repository import map_dataset_names
from trellis_api.jobs import configuration, repository
from trellis_api.jobs.alarms import repository as alarm_repository
from trellis_api.jobs.alarms.models import Alarm
from trellis_api.jobs.alarms.presentation import find_worst, present_alarm
from trellis_api.jobs.alarms.schemas import AlarmRead
from trellis_api.jobs.evaluating import repository as evaluating
from trellis_api.jobs.evaluating.presentation import present_order
from trellis_api.jobs.failures.hints import find_hint
from trellis_api.jobs.failures.remedies import REMEDIES, helps_to_resume, suggest_changes
from trellis_api.jobs.fields.schemas import FieldValue
from trellis_api.jobs.fields.service import JobField, map_modes, read_values
from trellis_api.jobs.fields.sorting import JobOrder, JobSort, decode_position, list_sorted
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.metrics import headline
from trellis_api.jobs.models import EVALUATE, TRAIN, Job
from trellis_api.jobs.reporting import service as reporting
from trellis_api.jobs.repository import JobFilter
from trellis_api.jobs.request_fields import read_plain
from trellis_api.jobs.run_time import current_run_s
from trellis_api.jobs.schemas import (
    BestBy,
    ExportAsRead,
    ExportRead,
    Failure,
    HeadlineMetric,
    JobGroupRead,
    JobKind,
    JobPage,
    JobRead,
    Progress,
    ResourcesRead,
    Resume,
)
from trellis_api.jobs.service import RESUMABLE, STOPPABLE
from trellis_api.jobs.sweep_names import MAP_SWEEP_NAMES
from trellis_api.models.repository import map_model_names

LAST_LINES = 20
_FAILED = frozenset({JobState.FAILED, JobState.CRASHED})


def present(session: Session, *, job: Job, has_detail: bool = False) -> JobRead:
    """Present one job; with the last log lines of a failed one if ``has_detail``."""
    return present_all(session, jobs=[job], has_detail=has_detail, has_notes=True)[0]


def present_measured(
    session: Session,
    *,
    job: Job,
    metric: str | None,
    fields: Sequence[JobField] = (),
    price: SlotPrice | None,
) -> JobRead:
    """Present one job in detail with cost, fields and metric as in a list: ``metric``, or its headline."""
    metrics = headline.summarise(session, jobs=[job], metric=metric)
    values = read_values(session, jobs=[job], fields=fields)
    (found,) = present_all(
        session, jobs=[job], has_detail=True, has_notes=True, metrics=metrics, fields=values, price=price
    )
    return found


def list_page(
    session: Session,
    *,
    wanted: JobFilter,
    order: JobOrder,
    fields: Sequence[JobField] = (),
    price: SlotPrice | None = None,
    cursor: str | None,
    limit: int,
) -> JobPage:
    """List one page of jobs in the requested order, each with one metric and the given fields."""
    shown: Sequence[Job]
    groups = None
    if (order.sort, order.direction, order.grouping) == (JobSort.CREATED, "desc", None):
        before = decode_time_position(cursor) if cursor is not None else None
        rows = repository.list_jobs(session, wanted=wanted, before=before, limit=limit + 1)
        shown, next_cursor = cut_page(rows, limit=limit)
    else:
        after = decode_position(cursor, order) if cursor is not None else None
        statement = repository.select_jobs(wanted)
        listed = list_sorted(session, statement, order=order, after=after, limit=limit)
        shown, next_cursor, groups = listed.jobs, listed.next_cursor, listed.groups
    metrics = headline.summarise(session, jobs=shown, metric=order.metric)
    values = read_values(session, jobs=shown, fields=fields)
    items = present_all(session, jobs=shown, metrics=metrics, fields=values, price=price)
    counted = None if groups is None else [JobGroupRead(value=value, count=count) for value, count in groups]
    return JobPage(items=items, next_cursor=next_cursor, groups=counted)


def present_all(
    session: Session,
    *,
    jobs: Sequence[Job],
    has_detail: bool = False,
    has_notes: bool = False,
    metrics: Mapping[str, HeadlineMetric] | None = None,
    fields: Mapping[str, dict[str, FieldValue]] | None = None,
    price: SlotPrice | None = None,
) -> list[JobRead]:
    """Present several jobs with a fixed number of queries."""
    run_times = repository.sum_earlier_run_times(session, jobs=jobs)
    tags = repository.map_tags(session, job_ids=[job.id for job in jobs])
    is_any_queued = any(job.state == JobState.QUEUED for job in jobs)
    ranks = repository.rank_queued(session) if is_any_queued else {}
    names = _Names(session, jobs)
    alarms = _Alarms(session, jobs)
    reports = reporting.map_reports(session, job_ids=[job.id for job in jobs])
    remediable = [job.id for job in jobs if job.state in _FAILED and job.cause in REMEDIES]
    composed = configuration.map_params(session, job_ids=remediable)
    headlines = headline.map_headlines(session, jobs=jobs)
    skipped = evaluating.count_skipped(session, job_ids=[job.id for job in jobs if job.evaluate])
    return [
        JobRead(
            **read_plain(job),
            id=job.id,
            kind=cast(JobKind, job.kind),
            state=job.state,
            model=names.model(job.model_id),
            dataset=names.dataset(job.dataset_id) if job.dataset_id else None,
            validation_dataset=(
                names.dataset(job.validation_dataset_id) if job.validation_dataset_id else None
            ),
            keep_best_by=BestBy.model_validate(job.keep_best_by) if job.keep_best_by else None,
            export=_export(job),
            exported_model=names.exported_model(job),
            export_as=names.export_as(job),
            evaluate=present_order(job, skipped=skipped.get(job.id, 0)),
            evaluation_id=job.evaluation_id,
            report_to=reports.get(job.id),
            resources=ResourcesRead(gpus=job.gpus),
            tags=tags.get(job.id, []),
            is_starred=job.is_starred,
            notes=job.notes if has_notes else None,
            attempt=job.attempt,
            cloned_from=job.cloned_from,
            sweep=names.sweep(job),
            group=job.group,
            resume_step=job.resume_step,
            resumes=list_resumes(session, job=job) if has_detail else [],
            created_at=job.created_at,
            queued_at=job.queued_at,
            launched_at=job.launched_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
            stop_requested_at=job.stop_requested_at,
            earlier_run_time_s=run_times.get(job.id, 0.0),
            cost=_cost(job, earlier_s=run_times.get(job.id, 0.0), price=price),
            progress=present_progress(job),
            eta_s=estimate_eta_s(job),
            queue_position=ranks.get(job.id),
            failure=_failure(session, job=job, composed=composed.get(job.id), has_lines=has_detail),
            headline_metrics=headlines.get(job.id, []),
            metric=(metrics or {}).get(job.id),
            fields=(fields or {}).get(job.id, {}),
            field_modes=map_modes(job, (fields or {}).get(job.id, {})),
            alarm_count=len(alarms.active(job)),
            worst_alarm=find_worst(alarms.active(job)),
            alarms=list_alarms(session, job=job) if has_detail else [],
            can_stop=job.state in STOPPABLE,
            can_resume=job.state in RESUMABLE,
            can_clone=job.kind == TRAIN,
            # A job of an evaluation goes with the evaluation.
            can_delete=job.state not in ACTIVE and job.kind != EVALUATE,
            last_event_id=job.event_count,
        )
        for job in jobs
    ]


def list_alarms(session: Session, *, job: Job) -> list[AlarmRead]:
    """List the alarms of all attempts, active ones first."""
    return [present_alarm(row) for row in alarm_repository.list_alarms(session, job_id=job.id)]


def list_resumes(session: Session, *, job: Job) -> list[Resume]:
    """List where attempts resumed, oldest first, without those whose steps a later attempt repeated."""
    if job.attempt < 2:
        return []
    steps = {row.path: row.step for row in repository.list_checkpoints(session, job_id=job.id)}
    starts = {row.number: row.resume_from for row in repository.list_attempts(session, job_id=job.id)}
    starts[job.attempt] = job.resume_from
    kept: list[Resume] = []
    for number, path in sorted(starts.items(), reverse=True):
        # One that began anew replaced everything before it.
        if number == 1 or path is None:
            break
        step = steps.get(path, job.resume_step if number == job.attempt else None)
        if step is not None and (not kept or step < kept[-1].step):
            kept.append(Resume(attempt=number, step=step))
    return kept[::-1]


def _cost(job: Job, *, earlier_s: float, price: SlotPrice | None) -> Cost | None:
    is_begun = job.started_at is not None or earlier_s > 0
    if price is None or not job.gpus or not is_begun:
        return None
    return price.of(job.gpus * (earlier_s + current_run_s(job)))


def estimate_eta_s(job: Job) -> float | None:
    """Estimate the seconds to the last step at this attempt's mean speed; None before its second step."""
    is_moving = job.state in {JobState.RUNNING, JobState.STOPPING}
    if not is_moving or not job.total_steps or job.first_step is None:
        return None
    if job.first_step_at is None or job.last_step_at is None or job.step <= job.first_step:
        return None
    seconds_a_step = (job.last_step_at - job.first_step_at).total_seconds() / (job.step - job.first_step)
    return max(0.0, round(seconds_a_step * (job.total_steps - job.step), 1))


class _Names:
    """The names of all models and datasets of some jobs, read with one query each."""

    def __init__(self, session: Session, jobs: Sequence[Job]) -> None:
        dataset_ids = {job.dataset_id for job in jobs if job.dataset_id}
        dataset_ids |= {job.validation_dataset_id for job in jobs if job.validation_dataset_id}
        model_ids = {job.model_id for job in jobs}
        model_ids |= {str(job.export["model_id"]) for job in jobs if job.export}
        export_ids = {
            str(job.export_as["job_id"]) for job in jobs if job.export_as and job.export_as.get("job_id")
        }
        self._exports = repository.map_job_names(session, job_ids=export_ids)
        self._sweeps = MAP_SWEEP_NAMES(session, {job.sweep_id for job in jobs if job.sweep_id})
        self._models = map_model_names(session, model_ids=model_ids)
        self._datasets = map_dataset_names(session, dataset_ids=dataset_ids)

    def model(self, model_id: str) -> NamedReference:
        return NamedReference(id=model_id, name=self._models.get(model_id))

    def dataset(self, dataset_id: str) -> NamedReference:
        return NamedReference(id=dataset_id, name=self._datasets.get(dataset_id))

    def sweep(self, job: Job) -> NamedReference | None:
        return NamedReference(id=job.sweep_id, name=self._sweeps.get(job.sweep_id)) if job.sweep_id else None

    def exported_model(self, job: Job) -> NamedReference | None:
        """Return the model that a finished export has registered; its name is null if it was deleted."""
        if not job.export or job.state != JobState.SUCCEEDED:
            return None
        return self.model(str(job.export["model_id"]))

    def export_as(self, job: Job) -> ExportAsRead | None:
        if not job.export_as:
            return None
        fields = dict(job.export_as)
        job_id = fields.pop("job_id", None)
        reference = NamedReference(id=job_id, name=self._exports.get(job_id)) if job_id else None
        return ExportAsRead(**fields, job=reference)


class _Alarms:
    """The active alarms of some jobs, read with one query."""

    def __init__(self, session: Session, jobs: Sequence[Job]) -> None:
        self._active: dict[str, list[Alarm]] = {}
        for row in alarm_repository.list_active(session, job_ids=[job.id for job in jobs]):
            self._active.setdefault(row.job_id, []).append(row)

    def active(self, job: Job) -> list[Alarm]:
        return self._active.get(job.id, [])


def _export(job: Job) -> ExportRead | None:
    if not job.export:
        return None
    order = job.export
    source = NamedReference(id=order["job_id"], name=order["job_name"])
    return ExportRead(source=source, step=order["step"], form=order["form"], name=order["name"])


def present_progress(job: Job) -> Progress:
    """Present the progress of a job."""
    fraction = min(1.0, job.step / job.total_steps) if job.total_steps else None
    return Progress(phase=job.phase, step=job.step, total_steps=job.total_steps, fraction=fraction)


def _failure(
    session: Session, *, job: Job, composed: dict[str, Any] | None, has_lines: bool
) -> Failure | None:
    if job.state not in _FAILED:
        return None
    lines: Iterable[str] = ()
    if has_lines:
        lines = (row.text for row in log_store.read_last(session, job=job, limit=LAST_LINES))
    reason = job.reason or _default_reason(job)
    return Failure(
        reason=reason,
        cause=job.cause,
        exit_code=job.exit_code,
        hint=find_hint(job.cause),
        changes=suggest_changes(job, composed=composed),
        resume_helps=helps_to_resume(job),
        last_lines=list(lines),
    )


def _default_reason(job: Job) -> str:
    if job.exit_code is not None:
        return f"The run exited with code {job.exit_code} without a reason."
    return "The run ended without a reason."
