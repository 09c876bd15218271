"""What reads, or has read, a version of a dataset, and whether it may go therefore.

What is unfinished needs the rows. So does a model that was trained on them: as long as it is there it can be
told what it learned, and from which rows exactly.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, String, cast
from sqlmodel import Session, col, or_, select
from trellis_contracts.data_tasks import DataTaskState
from trellis_contracts.dry_run import DryRunState
from trellis_contracts.states import ACTIVE

from trellis_api.data_tasks.models import DataTask
from trellis_api.data_tasks.repository import WITHOUT_RESULT
from trellis_api.datasets.models import DatasetVersion
from trellis_api.datasets.schemas import VersionUse
from trellis_api.evaluations.repository import list_reading_version
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_api.rewards.models import DryRun

#: Finished ones of a kind that are listed, newest first; unfinished ones all are.
MOST_FINISHED = 100
_OPEN_TASKS = (DataTaskState.QUEUED, DataTaskState.RUNNING)
_OPEN_DRY_RUNS = (DryRunState.QUEUED, DryRunState.RUNNING)


def list_uses(session: Session, version: DatasetVersion) -> list[VersionUse]:
    """List the jobs, tasks, dry runs and models that use a version, unfinished ones first."""
    found = [
        *_list_jobs(session, version),
        *_list_evaluations(session, version),
        *_list_tasks(session, version),
        *_list_dry_runs(session, version),
        *_list_models(session, version),
    ]
    return sorted(found, key=lambda use: not use.is_unfinished)


def list_needs(session: Session, version: DatasetVersion) -> list[VersionUse]:
    """List the uses that require the version to be kept."""
    return [use for use in list_uses(session, version) if use.is_unfinished or use.kind == "model"]


def _list_jobs(session: Session, version: DatasetVersion) -> Iterable[VersionUse]:
    trains = (col(Job.dataset_id) == version.dataset_id) & (col(Job.dataset_version) == version.id)
    validates = (col(Job.validation_dataset_id) == version.dataset_id) & (
        col(Job.validation_version) == version.id
    )
    query = select(Job).where(or_(trains, validates)).order_by(col(Job.created_at).desc())
    for job in _newest(session, query, col(Job.state).in_(ACTIVE)):
        yield VersionUse(
            kind="job", id=job.id, name=job.name, state=job.state, is_unfinished=job.state in ACTIVE
        )


def _list_evaluations(session: Session, version: DatasetVersion) -> Iterable[VersionUse]:
    """Yield the jobs that evaluate a model on rows of the version."""
    found = list_reading_version(session, dataset_id=version.dataset_id, version_id=version.id)
    unfinished = [(row, job) for row, job in found if job.state in ACTIVE]
    finished = [(row, job) for row, job in found if job.state not in ACTIVE]
    for row, job in [*unfinished, *finished[:MOST_FINISHED]]:
        yield VersionUse(
            kind="job", id=job.id, name=row.name, state=job.state, is_unfinished=job.state in ACTIVE
        )


def _list_tasks(session: Session, version: DatasetVersion) -> Iterable[VersionUse]:
    """Yield the tasks that read the version, or compare with it or decontaminate against it."""
    reads = (col(DataTask.dataset_id) == version.dataset_id) & (col(DataTask.version_id) == version.id)
    names = cast(col(DataTask.request), String).contains(version.id)
    query = select(DataTask).options(WITHOUT_RESULT).where(or_(reads, names))
    query = query.order_by(col(DataTask.created_at).desc())
    for task in _newest(session, query, col(DataTask.state).in_(_OPEN_TASKS)):
        yield VersionUse(
            kind="task",
            id=task.id,
            name=task.kind,
            state=task.state,
            is_unfinished=task.state in _OPEN_TASKS,
        )


def _list_dry_runs(session: Session, version: DatasetVersion) -> Iterable[VersionUse]:
    reads = (col(DryRun.dataset_id) == version.dataset_id) & (col(DryRun.dataset_version) == version.id)
    query = select(DryRun).where(reads).order_by(col(DryRun.created_at).desc())
    for run in _newest(session, query, col(DryRun.state).in_(_OPEN_DRY_RUNS)):
        is_open = run.state in _OPEN_DRY_RUNS
        yield VersionUse(kind="dry_run", id=run.id, name=None, state=run.state, is_unfinished=is_open)


def _list_models(session: Session, version: DatasetVersion) -> Iterable[VersionUse]:
    """Yield the models with the version in their lineage, which outlives the jobs in it."""
    names = cast(col(Model.lineage), String).contains(version.id)
    jobs = select(Job.id).where(
        col(Job.validation_dataset_id) == version.dataset_id, col(Job.validation_version) == version.id
    )
    validated = col(Model.source_job_id).in_(jobs)
    for model in session.exec(select(Model).where(or_(names, validated)).order_by(col(Model.created_at))):
        yield VersionUse(kind="model", id=model.id, name=model.name, state=model.state, is_unfinished=False)


def _newest(session: Session, query: Any, is_open: ColumnElement[bool]) -> list[Any]:
    """Return all open rows, and the newest of the others."""
    rest = session.exec(query.where(~is_open).limit(MOST_FINISHED))
    return [*session.exec(query.where(is_open)), *rest]
