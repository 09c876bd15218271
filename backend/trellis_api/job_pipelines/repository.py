"""Queries on pipelines of jobs."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlmodel import Session, col, select, tuple_

from trellis_api.core.ids import is_id
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage, StageOutcome
from trellis_api.job_pipelines.states import StageState

PREFIX = "jpl"
Position = tuple[datetime, str]


def find_pipeline(session: Session, *, pipeline_id: str) -> JobPipeline | None:
    """Return the pipeline with this ID; None for anything that is not an ID."""
    return session.get(JobPipeline, pipeline_id) if is_id(pipeline_id, prefix=PREFIX) else None


def lock_pipeline(session: Session, *, pipeline_id: str) -> JobPipeline | None:
    """Lock the pipeline until the transaction ends and return it; stages change only under this lock."""
    if not is_id(pipeline_id, prefix=PREFIX):
        return None
    return session.get(JobPipeline, pipeline_id, with_for_update=True, populate_existing=True)


def list_pipelines(session: Session, *, before: Position | None, limit: int) -> Sequence[JobPipeline]:
    """List pipelines, newest first."""
    query = select(JobPipeline)
    if before:
        query = query.where(tuple_(col(JobPipeline.created_at), col(JobPipeline.id)) < before)
    newest_first = (col(JobPipeline.created_at).desc(), col(JobPipeline.id).desc())
    return session.exec(query.order_by(*newest_first).limit(limit)).all()


def list_stages(session: Session, *, pipeline_id: str) -> Sequence[PipelineStage]:
    """List a pipeline's stages in the order in which they were given, in their current state."""
    query = select(PipelineStage).where(PipelineStage.pipeline_id == pipeline_id)
    return session.exec(
        query.order_by(col(PipelineStage.position)).execution_options(populate_existing=True)
    ).all()


def map_stages(session: Session, *, pipeline_ids: Iterable[str]) -> dict[str, list[PipelineStage]]:
    """Return the stages of several pipelines, by pipeline ID."""
    query = select(PipelineStage).where(col(PipelineStage.pipeline_id).in_(list(pipeline_ids)))
    found: dict[str, list[PipelineStage]] = {}
    for stage in session.exec(query.order_by(col(PipelineStage.position))):
        found.setdefault(stage.pipeline_id, []).append(stage)
    return found


def map_names(session: Session, *, pipeline_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those pipelines that exist, by ID."""
    query = select(JobPipeline.id, JobPipeline.name).where(col(JobPipeline.id).in_(list(pipeline_ids)))
    return dict(session.exec(query).all())


def list_unsettled(session: Session) -> Sequence[str]:
    """List the ids of active pipelines, and of those whose stages still run after a stop; oldest first."""
    running = select(PipelineStage.pipeline_id).where(PipelineStage.state == StageState.RUNNING)
    is_unsettled = col(JobPipeline.is_active).is_(True) | col(JobPipeline.id).in_(running)
    return session.exec(
        select(JobPipeline.id).where(is_unsettled).order_by(col(JobPipeline.created_at))
    ).all()


def list_stages_of_active(session: Session) -> dict[str, tuple[str, list[PipelineStage]]]:
    """List the stages of pipelines under way, by pipeline ID, each with the pipeline's name."""
    query = (
        select(JobPipeline.name, PipelineStage)
        .where(JobPipeline.id == PipelineStage.pipeline_id, col(JobPipeline.is_active).is_(True))
        .order_by(JobPipeline.name, col(PipelineStage.position))
    )
    found: dict[str, tuple[str, list[PipelineStage]]] = {}
    for name, stage in session.exec(query):
        found.setdefault(stage.pipeline_id, (name, []))[1].append(stage)
    return found


def find_outcome(session: Session, *, fingerprint: str) -> StageOutcome | None:
    """Return the outcome of the last stage with this fingerprint."""
    return session.get(StageOutcome, fingerprint)


def keep_outcome(session: Session, outcome: StageOutcome) -> None:
    """Let later stages with the same fingerprint take it over."""
    session.merge(outcome)
    session.flush()


def delete_outcome(session: Session, outcome: StageOutcome) -> None:
    """Forget one that holds no longer: its model was deleted."""
    session.delete(outcome)
    session.flush()


def delete_pipeline(session: Session, pipeline: JobPipeline) -> None:
    """Delete it and, by cascade, its stages; jobs and models stay."""
    session.delete(pipeline)
    session.flush()
