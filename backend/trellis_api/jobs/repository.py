"""Queries for jobs, their attempts and checkpoints."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, or_, tuple_
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar
from trellis_contracts.data_tasks import DataTaskKind, DataTaskState
from trellis_contracts.states import ACTIVE, HOLDS_SLOTS, JobState

from trellis_api.core.database import take_turns
from trellis_api.data_tasks.models import DataTask
from trellis_api.jobs.alarms.repository import select_jobs_with_alarms
from trellis_api.jobs.models import (
    EVALUATE,
    EXPORT,
    SERVE,
    TRAIN,
    Attempt,
    Checkpoint,
    ExportLeftover,
    Job,
    JobConfiguration,
    JobTag,
    Purge,
)

#: PostgreSQL advisory lock under which jobs are admitted, one admission at a time.
ADMISSION_LOCK = 7_240_001
_IS_QUEUED = col(Job.state) == JobState.QUEUED
#: Evaluations stand behind everything else; then priority, then first in, first out, unless somebody moved
#: the job. A place in line means something only in the order of the launches.
_LAUNCH_ORDER = (
    col(Job.kind) == EVALUATE,
    col(Job.priority).desc(),
    func.coalesce(col(Job.ordered_at), col(Job.queued_at)),
    col(Job.id),
)


@dataclass(frozen=True)
class JobFilter:
    """What jobs to list; every condition that is given must hold."""

    states: tuple[JobState, ...] = ()
    kind: str | None = None
    recipe: str | None = None
    tag: str | None = None
    text: str | None = None
    #: Whether an alarm is active.
    has_alarms: bool | None = None
    is_starred: bool | None = None
    sweep: str | None = None
    group: str | None = None
    model: str | None = None
    dataset: str | None = None
    #: Parameters with the values that they must have.
    params: tuple[tuple[str, str], ...] = ()


def find_job(session: Session, *, job_id: str) -> Job | None:
    """Return the job, or None."""
    return session.get(Job, job_id)


def lock_job(session: Session, *, job_id: str, waits: bool = True) -> Job | None:
    """Lock the job until the transaction ends and return its current state.

    Everything that changes a job takes this lock first. (On SQLite the writing
    transaction holds the lock of the whole database already.) ``waits=False``: None if another has the lock.
    """
    statement = select(Job).where(Job.id == job_id).with_for_update(skip_locked=not waits)
    return session.exec(statement, execution_options={"populate_existing": True}).first()


def list_jobs(
    session: Session, *, wanted: JobFilter, before: tuple[datetime, str] | None, limit: int
) -> Sequence[Job]:
    """List jobs, newest first, at most ``limit``, after the position of the last row seen."""
    statement = select_jobs(wanted).order_by(col(Job.created_at).desc(), col(Job.id).desc()).limit(limit)
    if before is not None:
        statement = statement.where(tuple_(col(Job.created_at), col(Job.id)) < before)
    return session.exec(statement).all()


def select_jobs(wanted: JobFilter) -> SelectOfScalar[Job]:
    """Select the jobs that match a filter, in no order."""
    statement = select(Job)
    if wanted.states:
        statement = statement.where(col(Job.state).in_(wanted.states))
    if wanted.kind is not None:
        statement = statement.where(Job.kind == wanted.kind)
    if wanted.recipe is not None:
        statement = statement.where(Job.recipe == wanted.recipe)
    if wanted.tag is not None:
        tagged = select(JobTag.job_id).where(JobTag.tag == wanted.tag)
        statement = statement.where(col(Job.id).in_(tagged))
    if wanted.text:
        part = wanted.text
        tagged = select(JobTag.job_id).where(col(JobTag.tag).icontains(part, autoescape=True))
        statement = statement.where(
            or_(
                col(Job.name).icontains(part, autoescape=True),
                col(Job.id).icontains(part, autoescape=True),
                col(Job.id).in_(tagged),
            )
        )
    if wanted.is_starred is not None:
        statement = statement.where(col(Job.is_starred) == wanted.is_starred)
    if wanted.has_alarms is not None:
        is_alarmed = col(Job.id).in_(select_jobs_with_alarms())
        statement = statement.where(is_alarmed if wanted.has_alarms else ~is_alarmed)
    if wanted.sweep is not None:
        statement = statement.where(Job.sweep_id == wanted.sweep)
    if wanted.group is not None:
        statement = statement.where(Job.group == wanted.group)
    if wanted.model is not None:
        statement = statement.where(Job.model_id == wanted.model)
    if wanted.dataset is not None:
        statement = statement.where(Job.dataset_id == wanted.dataset)
    for parameter, value in wanted.params:
        statement = statement.where(col(Job.params)[parameter].as_string() == value)
    return statement


def list_queued(session: Session, *, limit: int | None = None) -> Sequence[Job]:
    """List queued jobs in launch order: all, or the first ``limit``."""
    return session.exec(select(Job).where(_IS_QUEUED).order_by(*_LAUNCH_ORDER).limit(limit)).all()


def map_queued_for_other_platform(session: Session, *, platform: str) -> dict[str, str]:
    """Map the ids of queued jobs that were composed for another platform to that platform."""
    composed_for = col(JobConfiguration.document)[("composition", "platform")].as_string()
    statement = select(Job.id, composed_for).join(
        JobConfiguration, col(JobConfiguration.job_id) == col(Job.id)
    )
    return dict(session.exec(statement.where(_IS_QUEUED, composed_for != platform)).all())


def list_holding_slots(session: Session) -> Sequence[Job]:
    """List the jobs that are launching, running or stopping, which Ray should know."""
    return session.exec(
        select(Job).where(col(Job.state).in_(HOLDS_SLOTS)).order_by(col(Job.launched_at), col(Job.id))
    ).all()


def count_held_slots(session: Session) -> int:
    """Count the slots that are taken, including those of models served for a generation."""
    statement = select(func.coalesce(func.sum(Job.gpus), 0)).where(col(Job.state).in_(HOLDS_SLOTS))
    is_generating = (
        DataTask.kind == DataTaskKind.GENERATE.value,
        DataTask.state == DataTaskState.RUNNING.value,
    )
    generations = session.exec(select(DataTask.request).where(*is_generating))
    return int(session.exec(statement).one()) + sum(int(each.get("slots", 0)) for each in generations)


def count_running_exports(session: Session) -> int:
    """Count the exports that are launched and not finished."""
    statement = (
        select(func.count()).select_from(Job).where(Job.kind == EXPORT, col(Job.state).in_(HOLDS_SLOTS))
    )
    return session.exec(statement).one()


def count_running_evaluations(session: Session) -> int:
    """Count the evaluations without a slot that are launched and not finished."""
    is_running = (Job.kind == EVALUATE, Job.gpus == 0, col(Job.state).in_(HOLDS_SLOTS))
    return session.exec(select(func.count()).select_from(Job).where(*is_running)).one()


def count_running_endpoints(session: Session) -> int:
    """Count the endpoints without a slot that are launched and have not ended."""
    is_running = (Job.kind == SERVE, Job.gpus == 0, col(Job.state).in_(HOLDS_SLOTS))
    return session.exec(select(func.count()).select_from(Job).where(*is_running)).one()


def list_active_exports(session: Session) -> Sequence[Job]:
    """List the exports that wait or run; there are never many."""
    return session.exec(select(Job).where(Job.kind == EXPORT, col(Job.state).in_(ACTIVE))).all()


def list_exporting_steps(session: Session, *, job_id: str) -> set[int]:
    """Return the steps of a job whose checkpoints are being exported, or wait for it."""
    orders = [job.export for job in list_active_exports(session) if job.export]
    return {int(order["step"]) for order in orders if order["job_id"] == job_id}


def list_jobs_from_model(session: Session, *, model_id: str, limit: int) -> Sequence[Job]:
    """List the trainings that start from a model, newest first."""
    statement = select(Job).where(Job.model_id == model_id, Job.kind == TRAIN)
    return session.exec(statement.order_by(col(Job.created_at).desc()).limit(limit)).all()


def lock_admission(session: Session) -> None:
    """Let one transaction at a time count free slots and take some."""
    take_turns(session, key=ADMISSION_LOCK)


def rank_queued(session: Session) -> dict[str, int]:
    """Map each queued job to its position, from 1."""
    statement = select(Job.id).where(_IS_QUEUED).order_by(*_LAUNCH_ORDER)
    return {job_id: position for position, job_id in enumerate(session.exec(statement), start=1)}


def map_job_names(session: Session, *, job_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those jobs that exist, by ID."""
    return dict(session.exec(select(Job.id, Job.name).where(col(Job.id).in_(list(job_ids)))).all())


def map_jobs(session: Session, *, job_ids: Iterable[str]) -> dict[str, Job]:
    """Map ids to those jobs that exist."""
    return {job.id: job for job in session.exec(select(Job).where(col(Job.id).in_(list(job_ids))))}


def map_tags(session: Session, *, job_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the tags of each job, sorted."""
    tags: dict[str, list[str]] = {}
    statement = select(JobTag).where(col(JobTag.job_id).in_(list(job_ids))).order_by(JobTag.tag)
    for row in session.exec(statement):
        tags.setdefault(row.job_id, []).append(row.tag)
    return tags


def add_job(session: Session, *, job: Job, tags: Iterable[str]) -> None:
    """Write a new job."""
    session.add(job)
    session.flush()
    session.add_all(JobTag(job_id=job.id, tag=tag) for tag in dict.fromkeys(tags))
    session.flush()


def replace_tags(session: Session, *, job_id: str, tags: Iterable[str]) -> None:
    """Let a job have these tags and no others."""
    session.exec(delete(JobTag).where(col(JobTag.job_id) == job_id))
    session.add_all(JobTag(job_id=job_id, tag=tag) for tag in tags)
    session.flush()


def sum_earlier_run_times(session: Session, *, jobs: Sequence[Job]) -> dict[str, float]:
    """Sum the seconds of attempts before the current one, for jobs that had any."""
    resumed = {job.id: job.attempt for job in jobs if job.attempt > 1}
    seconds: dict[str, float] = {}
    if not resumed:
        return seconds
    for row in session.exec(select(Attempt).where(col(Attempt.job_id).in_(resumed))):
        if row.number < resumed[row.job_id] and row.started_at and row.finished_at:
            ran_s = (row.finished_at - row.started_at).total_seconds()
            seconds[row.job_id] = seconds.get(row.job_id, 0.0) + ran_s
    return seconds


def delete_job(session: Session, *, job_id: str) -> None:
    """Remove a job and, by cascade, all that it reported; a tombstone stands for its files."""
    session.exec(delete(Job).where(col(Job.id) == job_id))
    session.add(Purge(job_id=job_id))
    session.flush()


def add_leftover(session: Session, *, job_id: str, model_id: str) -> None:
    """Let the folders of an export be removed, however long that takes to happen."""
    session.merge(ExportLeftover(job_id=job_id, model_id=model_id))
    session.flush()


def list_leftovers(session: Session) -> Sequence[ExportLeftover]:
    """List the exports whose folders are to be removed, oldest first."""
    return session.exec(select(ExportLeftover).order_by(col(ExportLeftover.requested_at))).all()


def delete_leftover(session: Session, row: ExportLeftover) -> None:
    """Delete the record once its folders are gone or wanted again; a newer request for it stays."""
    is_same = col(ExportLeftover.requested_at) == row.requested_at
    session.exec(delete(ExportLeftover).where(col(ExportLeftover.job_id) == row.job_id, is_same))


def list_purges(session: Session) -> Sequence[str]:
    """List the ids of deleted jobs whose files are still there, oldest first."""
    return session.exec(select(Purge.job_id).order_by(col(Purge.requested_at))).all()


def delete_purge(session: Session, *, job_id: str) -> None:
    """Note that the files of a deleted job are gone."""
    session.exec(delete(Purge).where(col(Purge.job_id) == job_id))


def find_attempt(session: Session, *, job_id: str, number: int) -> Attempt | None:
    """Find one attempt of a job; None before its launch."""
    return session.get(Attempt, (job_id, number))


def list_attempts(session: Session, *, job_id: str) -> Sequence[Attempt]:
    """List all launched attempts, oldest first."""
    return session.exec(select(Attempt).where(Attempt.job_id == job_id).order_by(col(Attempt.number))).all()


def find_attempt_by_token(session: Session, *, token_hash: str) -> Attempt | None:
    """Return the attempt whose ingest token has this hash."""
    return session.exec(select(Attempt).where(Attempt.token_hash == token_hash)).first()


def find_checkpoint(session: Session, *, job_id: str, step: int) -> Checkpoint | None:
    """Return the checkpoint of one step. ``hf_path`` is set if it can become a model."""
    return session.get(Checkpoint, (job_id, step))


def list_checkpoints(session: Session, *, job_id: str) -> Sequence[Checkpoint]:
    """List checkpoints, newest step first."""
    return session.exec(
        select(Checkpoint).where(Checkpoint.job_id == job_id).order_by(col(Checkpoint.step).desc())
    ).all()


def list_pruned_with_files(session: Session) -> Sequence[Checkpoint]:
    """List pruned checkpoints whose files have yet to be removed."""
    return session.exec(
        select(Checkpoint)
        .where(col(Checkpoint.pruned_at).is_not(None), col(Checkpoint.removed_at).is_(None))
        .order_by(col(Checkpoint.pruned_at))
    ).all()
