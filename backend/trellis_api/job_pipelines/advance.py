"""Takes a pipeline one look further: what is over is taken in, what can begin begins.

Every look decides from the rows alone, under the pipeline's lock: however many workers look, and whatever
dies, a stage begins once and its end is noted once.
"""

import logging

from sqlmodel import Session
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.begin import begin
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage, StageOutcome
from trellis_api.job_pipelines.schemas import StageCreate
from trellis_api.job_pipelines.states import (
    ENDED_PIPELINES,
    StageState,
    find_blocked,
    find_startable,
    of_pipeline,
)
from trellis_api.jobs.models import Job
from trellis_api.jobs.repository import find_job
from trellis_api.models.repository import find_model

log = logging.getLogger(__name__)
_MAX_REASON = 2000


def advance(session: Session, settings: Settings, *, pipeline_id: str) -> bool:
    """Advance a pipeline by one step; returns whether a job was queued."""
    pipeline = repository.lock_pipeline(session, pipeline_id=pipeline_id)
    if pipeline is None:
        return False
    stages = {each.stage_id: each for each in repository.list_stages(session, pipeline_id=pipeline_id)}
    for stage in stages.values():
        if stage.state == StageState.RUNNING:
            _take_in(session, stage)
    has_begun = False
    if pipeline.is_active:
        has_begun = _begin_all(session, settings, pipeline, stages)
    _settle_pipeline(session, pipeline, stages)
    return has_begun


def give_up(session: Session, *, pipeline_id: str, problem: str) -> None:
    """Fail what cannot be looked at, so that it does not hold up the others for ever."""
    pipeline = repository.lock_pipeline(session, pipeline_id=pipeline_id)
    if pipeline is None:
        return
    stages = {each.stage_id: each for each in repository.list_stages(session, pipeline_id=pipeline_id)}
    waiting = [each for each in stages.values() if each.state == StageState.WAITING]
    for stage in waiting if pipeline.is_active else stages.values():
        if stage.state in (StageState.WAITING, StageState.RUNNING):
            _end(session, stage, StageState.FAILED, reason=problem, cause="pipeline_stage_failed")
    _settle_pipeline(session, pipeline, stages)


def _begin_all(
    session: Session, settings: Settings, pipeline: JobPipeline, stages: dict[str, PipelineStage]
) -> bool:
    """Block and begin until nothing more can be: a stage that is skipped lets others begin at once."""
    asked = {name: StageCreate.model_validate(stage.document) for name, stage in stages.items()}
    needs = {name: request.all_needs for name, request in asked.items()}
    has_begun = False
    while True:
        states = {name: StageState(stage.state) for name, stage in stages.items()}
        for name in find_blocked(states, needs):
            undone = ", ".join(need for need in needs[name] if states[need] not in ("succeeded", "skipped"))
            reason = f"It depends on {undone}, which did not finish."
            _end(session, stages[name], StageState.BLOCKED, reason=reason)
        startable = find_startable(states, needs)
        if not startable:
            return has_begun
        for name in startable:
            source = asked[name].model.stage
            model_id = asked[name].model.base or (stages[source].model_id if source else None) or ""
            _begin_one(session, settings, pipeline, stages[name], model_id)
            has_begun |= stages[name].state == StageState.RUNNING


def _begin_one(
    session: Session, settings: Settings, pipeline: JobPipeline, stage: PipelineStage, model_id: str
) -> None:
    try:
        with session.begin_nested():
            begin(session, settings, pipeline=pipeline, stage=stage, model_id=model_id)
    except DomainError as error:
        session.refresh(stage)
        log.warning("pipeline %s: stage %s cannot begin: %s", pipeline.id, stage.stage_id, error.message)
        _end(session, stage, StageState.FAILED, reason=error.message, cause=error.code)


def _take_in(session: Session, stage: PipelineStage) -> None:
    """Note the end of a stage's job, and of the export behind a training; nothing while they last."""
    job = find_job(session, job_id=stage.job_id) if stage.job_id else None
    if job is None:
        _end(session, stage, StageState.FAILED, reason="The job was deleted.", cause="stage_job_deleted")
        return
    if job.state in ACTIVE:
        return
    if job.state != JobState.SUCCEEDED:
        _end_undone(session, stage, job)
        return
    asked = StageCreate.model_validate(stage.document)
    if asked.kind == "train" and asked.exports:
        _take_in_export(session, stage, job)
    else:
        _succeed(session, stage)


def _take_in_export(session: Session, stage: PipelineStage, job: Job) -> None:
    order = job.export_as or {}
    export_id = order.get("job_id")
    if export_id is None:
        if order.get("problem"):
            reason = f"The model was not exported: {order['problem']}"
            _end(session, stage, StageState.FAILED, reason=reason, cause="stage_not_exported")
        return  # or it waits for the scores that tell the best checkpoint
    export = find_job(session, job_id=export_id)
    if export is None:
        reason = "The export job was deleted."
        _end(session, stage, StageState.FAILED, reason=reason, cause="stage_not_exported")
    elif export.state == JobState.SUCCEEDED:
        model_id = str((export.export or {}).get("model_id"))
        if find_model(session, model_id=model_id) is None:
            reason = "The output model was deleted."
            _end(session, stage, StageState.FAILED, reason=reason, cause="stage_not_exported")
            return
        stage.model_id = model_id
        _succeed(session, stage)
    elif export.state not in ACTIVE:
        _end_undone(session, stage, export)


def _end_undone(session: Session, stage: PipelineStage, job: Job) -> None:
    """End the stage as its job, or the export of its model, was stopped or has failed."""
    if job.state == JobState.STOPPED:
        _end(session, stage, StageState.STOPPED, reason=job.reason or "The job was stopped.", cause=job.cause)
        return
    reason = job.reason or f"Job '{job.name}' {job.state.value} without a reason."
    _end(session, stage, StageState.FAILED, reason=reason, cause=job.cause)


def _succeed(session: Session, stage: PipelineStage) -> None:
    _end(session, stage, StageState.SUCCEEDED)
    if stage.fingerprint is None or stage.job_id is None:
        return
    outcome = StageOutcome(
        fingerprint=stage.fingerprint,
        job_id=stage.job_id,
        evaluation_id=stage.evaluation_id,
        model_id=stage.model_id,
        pipeline_id=stage.pipeline_id,
    )
    repository.keep_outcome(session, outcome)


def _end(
    session: Session,
    stage: PipelineStage,
    state: StageState,
    *,
    reason: str | None = None,
    cause: str | None = None,
) -> None:
    stage.state, stage.finished_at = state.value, utc_now()
    stage.reason, stage.cause = reason[:_MAX_REASON] if reason else None, cause
    session.add(stage)
    session.flush()


def _settle_pipeline(session: Session, pipeline: JobPipeline, stages: dict[str, PipelineStage]) -> None:
    states = [StageState(stage.state) for stage in stages.values()]
    state = of_pipeline(states, is_active=pipeline.is_active)
    if state in ENDED_PIPELINES:
        pipeline.is_active = False
        if pipeline.state != state or pipeline.finished_at is None:
            pipeline.finished_at = utc_now()
    pipeline.state = state.value
    session.add(pipeline)
    session.flush()
