"""Queries on saved pipelines and on runs."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlmodel import Session, col, or_, select, tuple_
from trellis_contracts.data_tasks import DataTaskKind

from trellis_api.core.ids import is_id
from trellis_api.data_tasks.models import DataTask
from trellis_api.data_tasks.repository import WITHOUT_RESULT
from trellis_api.pipelines.models import PipelineVersion, SavedPipeline

Position = tuple[datetime, str]


def find_pipeline(session: Session, *, pipeline_id: str, for_update: bool = False) -> SavedPipeline | None:
    """Return the saved pipeline with this ID; None for anything that is not an ID."""
    if not is_id(pipeline_id, prefix="pip"):
        return None
    lock = {"with_for_update": True, "populate_existing": True} if for_update else {}
    return session.get(SavedPipeline, pipeline_id, **lock)  # type: ignore[arg-type]


def find_pipeline_named(session: Session, *, name: str) -> SavedPipeline | None:
    """Return the saved pipeline with this name, or None."""
    return session.exec(select(SavedPipeline).where(SavedPipeline.name == name)).first()


def list_pipelines(session: Session, *, after: Position | None, limit: int) -> Sequence[SavedPipeline]:
    """List pipelines, newest first."""
    query = select(SavedPipeline)
    if after:
        query = query.where(tuple_(col(SavedPipeline.created_at), col(SavedPipeline.id)) < after)
    query = query.order_by(col(SavedPipeline.created_at).desc(), col(SavedPipeline.id).desc())
    return session.exec(query.limit(limit)).all()


def find_version(session: Session, *, pipeline_id: str, number: int) -> PipelineVersion | None:
    """Return a version of a saved pipeline, or None."""
    return session.get(PipelineVersion, (pipeline_id, number))


def list_versions(session: Session, *, pipeline_id: str) -> Sequence[PipelineVersion]:
    """List every version, newest first."""
    query = select(PipelineVersion).where(PipelineVersion.pipeline_id == pipeline_id)
    return session.exec(query.order_by(col(PipelineVersion.number).desc())).all()


def map_newest_versions(
    session: Session, *, pipelines: Iterable[SavedPipeline]
) -> dict[str, PipelineVersion]:
    """Return the newest version of each pipeline, by the pipeline's ID."""
    newest = [(each.id, each.version) for each in pipelines]
    wanted = tuple_(col(PipelineVersion.pipeline_id), col(PipelineVersion.number)).in_(newest)
    rows = session.exec(select(PipelineVersion).where(wanted)).all() if newest else []
    return {row.pipeline_id: row for row in rows}


def add(session: Session, *rows: SavedPipeline | PipelineVersion) -> None:
    """Insert pipelines or versions; IntegrityError if a name is taken."""
    for row in rows:
        session.add(row)
        session.flush()


def delete_pipeline(session: Session, pipeline: SavedPipeline) -> None:
    """Delete the row; its versions go with it."""
    session.delete(pipeline)
    session.flush()


def find_run(session: Session, *, task_id: str) -> DataTask | None:
    """Return the run with this ID; None for anything else."""
    task = session.get(DataTask, task_id) if is_id(task_id, prefix="dtk") else None
    return task if task is not None and task.kind == DataTaskKind.PIPELINE else None


def list_runs(
    session: Session,
    *,
    dataset: str | None,
    version: str | None,
    pipeline: str | None,
    purposes: Sequence[str] | None,
    after: Position | None,
    limit: int,
) -> Sequence[DataTask]:
    """List the runs that read or made the dataset, newest first."""
    query = select(DataTask).options(WITHOUT_RESULT).where(DataTask.kind == DataTaskKind.PIPELINE.value)
    if dataset is not None:
        query = query.where(or_(DataTask.dataset_id == dataset, DataTask.made_dataset_id == dataset))
    if version is not None:
        query = query.where(DataTask.version_id == version)
    if pipeline is not None:
        query = query.where(col(DataTask.request)["pipeline_id"].as_string() == pipeline)
    if purposes:
        query = query.where(col(DataTask.purpose).in_(purposes))
    if after:
        query = query.where(tuple_(col(DataTask.created_at), col(DataTask.id)) < after)
    query = query.order_by(col(DataTask.created_at).desc(), col(DataTask.id).desc())
    return session.exec(query.limit(limit)).all()
