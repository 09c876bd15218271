"""Begins a stage: takes over what the same inputs led to before, or writes its job.

The job's row and the stage's note of it are written in one transaction: a worker that dies in between has
written neither, so no stage ever has two jobs, and no job is without its stage.
"""

import logging
from dataclasses import dataclass

from sqlmodel import Session
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.core.texts import MAX_NAME_CHARACTERS
from trellis_api.evaluations import create as evaluations
from trellis_api.evaluations.repository import find_evaluation
from trellis_api.evaluations.schemas import EvaluationCreate
from trellis_api.job_pipelines import fingerprint, repository
from trellis_api.job_pipelines.checking import evaluation_plan, job_request
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage, StageOutcome
from trellis_api.job_pipelines.schemas import StageCreate
from trellis_api.job_pipelines.states import StageState
from trellis_api.jobs import service, submit
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.repository import find_job
from trellis_api.jobs.schemas import JobCreate
from trellis_api.models.ready import require_ready
from trellis_api.models.repository import find_model

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """What a stage would do, and the hash of what that is made from."""

    fingerprint: str
    work: JobCreate | EvaluationCreate


def begin(
    session: Session, settings: Settings, *, pipeline: JobPipeline, stage: PipelineStage, model_id: str
) -> None:
    """Set a stage to SKIPPED or RUNNING; a problem raises ``DomainError`` and changes nothing."""
    asked = StageCreate.model_validate(stage.document)
    plan = _plan(session, settings, pipeline=pipeline, stage=asked, model_id=model_id)
    is_as_before = stage.fingerprint == plan.fingerprint and not stage.is_forced
    if not stage.is_forced and (outcome := _find_outcome(session, plan.fingerprint, asked)) is not None:
        _take_over(stage, outcome)
    elif is_as_before and _resume(session, settings, stage):
        stage.state = StageState.RUNNING.value
    else:
        _submit(session, settings, stage, plan.work)
    stage.fingerprint, stage.is_forced = plan.fingerprint, False
    stage.started_at = utc_now()
    session.add(stage)
    session.flush()


def _plan(
    session: Session, settings: Settings, *, pipeline: JobPipeline, stage: StageCreate, model_id: str
) -> Plan:
    title = f"{pipeline.name} · {stage.title or stage.id}"
    if stage.kind == "evaluate":
        plan = evaluation_plan(stage, model_id=model_id)
        _, orders = evaluations.check_plan(session, settings, plan=plan)
        digest = fingerprint.hash_evaluation(
            settings,
            orders=orders,
            engine=stage.engine,
            seed=stage.seed,
            model=require_ready(session, model_id=model_id),
        )
        work = EvaluationCreate(**dict(plan), name=title[:200], priority=stage.priority)
        return Plan(digest, work)
    name = exports.find_free_name(session, title[:MAX_NAME_CHARACTERS]) if stage.exports else None
    request = job_request(stage, model_id=model_id, name=title[:200], export_name=name)
    found = submit.compose_request(session, request=request, settings=settings)
    digest = fingerprint.hash_training(
        session,
        settings,
        stage=stage,
        job=found.job,
        job_inputs=found.job_inputs,
        composition=found.composition,
    )
    return Plan(digest, request)


def _find_outcome(session: Session, digest: str, stage: StageCreate) -> StageOutcome | None:
    """Return the recorded outcome of the same inputs, if it still exists."""
    outcome = repository.find_outcome(session, fingerprint=digest)
    if outcome is None:
        return None
    if stage.kind == "evaluate":
        row = find_evaluation(session, evaluation_id=outcome.evaluation_id or "")
        is_there = row is not None and row.results is not None
    elif stage.exports:
        model = find_model(session, model_id=outcome.model_id or "")
        is_there = model is not None and bool(model.path)
    else:
        is_there = find_job(session, job_id=outcome.job_id) is not None
    if is_there:
        return outcome
    repository.delete_outcome(session, outcome)
    return None


def _take_over(stage: PipelineStage, outcome: StageOutcome) -> None:
    stage.state = StageState.SKIPPED.value
    stage.job_id, stage.model_id = outcome.job_id, outcome.model_id
    stage.evaluation_id, stage.reused_from = outcome.evaluation_id, outcome.pipeline_id
    stage.finished_at = utc_now()
    log.info("pipeline %s: stage %s is skipped, nothing changed", stage.pipeline_id, stage.stage_id)


def _resume(session: Session, settings: Settings, stage: PipelineStage) -> bool:
    """Go on with what was begun: a job that was stopped, or the export of one that has trained.

    False where there is none, or it cannot be.
    """
    job = find_job(session, job_id=stage.job_id) if stage.job_id else None
    if job is None:
        return False
    if job.state in {JobState.STOPPED, JobState.CRASHED}:
        service.resume(session, job_id=job.id, data_root=settings.data_root)
    elif not exports.queue_again(session, job=job, settings=settings):
        return False
    stage.evaluation_id = job.evaluation_id
    log.info("pipeline %s: stage %s goes on with %s", stage.pipeline_id, stage.stage_id, job.id)
    return True


def _submit(
    session: Session, settings: Settings, stage: PipelineStage, work: JobCreate | EvaluationCreate
) -> None:
    if isinstance(work, EvaluationCreate):
        (row,) = evaluations.create(session, settings, request=work)
        stage.job_id, stage.evaluation_id = row.job_id, row.id
    else:
        stage.job_id = submit.submit(session, request=work, settings=settings).id
        stage.evaluation_id = None
    stage.state = StageState.RUNNING.value
    log.info("pipeline %s: stage %s runs as %s", stage.pipeline_id, stage.stage_id, stage.job_id)
