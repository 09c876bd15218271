"""Decides about pipelines of jobs: what a person asks of one.

create / start / rerun                            the pipeline is active, its stages wait
→ trellis_workers/jobs/advance_pipelines.py       every other second: ``advance.advance``
→ advance                                         begins what can begin (``begin.py``), takes in what is over

All that is known of a pipeline lies in its rows, and a stage's job is written in the transaction that notes
it in the stage: whatever dies, the next look goes on from what is there.
"""

from sqlmodel import Session
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.evaluations import service as evaluations
from trellis_api.evaluations.errors import EvaluationNotCancellable, EvaluationNotFound
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.checking import check_stages
from trellis_api.job_pipelines.errors import (
    JobPipelineNotFound,
    JobPipelineNotRunning,
    JobPipelineRunning,
    StageNotFound,
    StageNotReady,
)
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage
from trellis_api.job_pipelines.named import list_named
from trellis_api.job_pipelines.presentation import can_rerun, present_all
from trellis_api.job_pipelines.schemas import JobPipelineCreate, JobPipelineRead, StageCreate
from trellis_api.job_pipelines.states import PipelineState, StageState, find_behind, of_pipeline
from trellis_api.jobs import repository as jobs
from trellis_api.jobs import service as jobs_service
from trellis_api.jobs.models import EVALUATE, Job
from trellis_api.jobs.named import keep_named
from trellis_api.jobs.service import STOPPABLE

_UNDER_WAY = (PipelineState.RUNNING, PipelineState.STOPPING)


def create(session: Session, settings: Settings, *, request: JobPipelineCreate) -> JobPipeline:
    """Write the stages down, waiting; everything that is wrong with any of them raises here."""
    pipeline = JobPipeline(id=new_id(repository.PREFIX), name=request.name, description=request.description)
    stages = [
        PipelineStage(
            pipeline_id=pipeline.id,
            stage_id=stage.id,
            position=position,
            document=stage.model_dump(mode="json"),
        )
        for position, stage in enumerate(request.stages)
    ]
    keep_named(session, [list_named(stages)])
    check_stages(session, settings, request=request)
    session.add(pipeline)
    session.flush()
    session.add_all(stages)
    session.flush()
    if request.start:
        _activate(session, pipeline)
    return pipeline


def get_pipeline(session: Session, *, pipeline_id: str) -> JobPipeline:
    """Return the pipeline; 404 if there is none."""
    pipeline = repository.find_pipeline(session, pipeline_id=pipeline_id)
    if pipeline is None:
        raise _not_found(pipeline_id)
    return pipeline


def list_page(session: Session, *, cursor: str | None, limit: int) -> Page[JobPipelineRead]:
    """List one page, newest first."""
    before = decode_time_position(cursor) if cursor else None
    rows = repository.list_pipelines(session, before=before, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=present_all(session, shown), next_cursor=next_cursor)


def start(session: Session, *, pipeline_id: str) -> JobPipeline:
    """Let all stages wait again; those whose inputs did not change will be skipped.

    A stage that was stopped keeps its job, and one that has trained and whose export failed too: if nothing
    changed, that goes on from its checkpoint.
    """
    pipeline = _lock(session, pipeline_id)
    if pipeline.state in _UNDER_WAY:
        raise JobPipelineRunning(f"'{pipeline.name}' is {pipeline.state} already.")
    for stage in repository.list_stages(session, pipeline_id=pipeline.id):
        _let_wait(session, stage)
    _activate(session, pipeline)
    return pipeline


def stop(session: Session, *, pipeline_id: str) -> tuple[JobPipeline, list[str]]:
    """Begin no more stages and ask the jobs of those that run to stop; the ids of these jobs."""
    pipeline = _lock(session, pipeline_id)
    if pipeline.state != PipelineState.RUNNING:
        raise JobPipelineNotRunning(f"'{pipeline.name}' is {pipeline.state}; there is nothing to stop.")
    pipeline.is_active = False
    stages = repository.list_stages(session, pipeline_id=pipeline.id)
    running = [stage for stage in stages if stage.state == StageState.RUNNING]
    asked = [job_id for stage in running for job_id in _ask_to_stop(session, stage)]
    pipeline.state = of_pipeline((StageState(stage.state) for stage in stages), is_active=False).value
    if not running:
        pipeline.finished_at = utc_now()
    session.add(pipeline)
    session.flush()
    return pipeline, asked


def rerun(session: Session, *, pipeline_id: str, stage_id: str) -> JobPipeline:
    """Let a stage and all behind it run again, whatever they were made from."""
    pipeline = _lock(session, pipeline_id)
    stages = {stage.stage_id: stage for stage in repository.list_stages(session, pipeline_id=pipeline.id)}
    if stage_id not in stages:
        raise StageNotFound(f"'{pipeline.name}' has no stage '{stage_id[:80]}'.")
    needs = {name: StageCreate.model_validate(each.document).all_needs for name, each in stages.items()}
    states = {name: StageState(each.state) for name, each in stages.items()}
    again = {stage_id, *find_behind(stage_id, needs)}
    running = [name for name in stages if name in again and states[name] is StageState.RUNNING]
    if running:
        raise JobPipelineRunning(f"Stop the workflow first: {', '.join(running)} still running.")
    if not can_rerun(stage_id, states, needs):
        raise StageNotReady(
            f"'{stage_id}' is pending, or one of its dependencies hasn't finished. Start the workflow."
        )
    for name in again:
        _let_wait(session, stages[name], is_forced=True)
    _activate(session, pipeline)
    return pipeline


def delete(session: Session, *, pipeline_id: str) -> None:
    """Forget a pipeline that does not run; its jobs, models and evaluations stay."""
    pipeline = _lock(session, pipeline_id)
    if pipeline.state in _UNDER_WAY:
        raise JobPipelineRunning(f"'{pipeline.name}' is {pipeline.state}; stop it first.")
    repository.delete_pipeline(session, pipeline)


def _activate(session: Session, pipeline: JobPipeline) -> None:
    keep_named(session, [list_named(repository.list_stages(session, pipeline_id=pipeline.id))])
    pipeline.is_active = True
    pipeline.state = PipelineState.RUNNING.value
    pipeline.started_at, pipeline.finished_at = utc_now(), None
    session.add(pipeline)
    session.flush()


def _let_wait(session: Session, stage: PipelineStage, *, is_forced: bool = False) -> None:
    keeps_job = not is_forced and _can_go_on(session, stage)
    stage.state = StageState.WAITING.value
    stage.is_forced = is_forced or stage.is_forced
    if not keeps_job:
        stage.job_id = stage.fingerprint = None
    stage.evaluation_id = stage.model_id = stage.reused_from = None
    stage.reason = stage.cause = stage.started_at = stage.finished_at = None
    session.add(stage)


def _can_go_on(session: Session, stage: PipelineStage) -> bool:
    """Tell whether the next start continues the stage's job instead of starting a new one."""
    if stage.state == StageState.FAILED:
        job = jobs.find_job(session, job_id=stage.job_id) if stage.job_id else None
        return job is not None and job.state == JobState.SUCCEEDED
    # One that waited or was blocked may have a job from the start before, which was to go on.
    return stage.state in (StageState.STOPPED, StageState.WAITING, StageState.BLOCKED)


def _ask_to_stop(session: Session, stage: PipelineStage) -> list[str]:
    """Stop the job of a stage, or the export behind it."""
    job = jobs.find_job(session, job_id=stage.job_id) if stage.job_id else None
    export_id = job.export_as.get("job_id") if job is not None and job.export_as else None
    export = jobs.find_job(session, job_id=export_id) if export_id else None
    found = [each for each in (job, export) if each is not None and each.state in ACTIVE]
    return [each.id for each in found if _stop_job(session, each)]


def _stop_job(session: Session, job: Job) -> bool:
    if job.kind == EVALUATE and job.evaluation_id is not None:
        try:
            evaluations.cancel(session, evaluation_id=job.evaluation_id)
        except (EvaluationNotCancellable, EvaluationNotFound):
            return False
        return True
    locked = jobs_service.get_locked_job(session, job_id=job.id)
    if locked.state not in STOPPABLE:
        return False
    jobs_service.request_stop(session, job_id=job.id)
    return True


def _lock(session: Session, pipeline_id: str) -> JobPipeline:
    pipeline = repository.lock_pipeline(session, pipeline_id=pipeline_id)
    if pipeline is None:
        raise _not_found(pipeline_id)
    return pipeline


def _not_found(pipeline_id: str) -> JobPipelineNotFound:
    return JobPipelineNotFound(f"Workflow '{pipeline_id[:80]}' not found.")
