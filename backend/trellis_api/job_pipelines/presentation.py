"""Pipelines of jobs as clients see them."""

from collections.abc import Iterable, Sequence

from sqlmodel import Session

from trellis_api.core.references import NamedReference
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage
from trellis_api.job_pipelines.schemas import JobPipelineRead, StageCreate, StageJob, StageRead
from trellis_api.job_pipelines.states import DONE, PipelineState, StageState, find_behind
from trellis_api.jobs.failures.hints import find_hint
from trellis_api.jobs.models import Job
from trellis_api.jobs.presentation import estimate_eta_s, present_progress
from trellis_api.jobs.repository import map_jobs
from trellis_api.models.repository import map_model_names

_UNDER_WAY = frozenset({PipelineState.RUNNING, PipelineState.STOPPING})


def present(session: Session, pipeline: JobPipeline) -> JobPipelineRead:
    """Present one pipeline."""
    return present_all(session, [pipeline])[0]


def present_all(session: Session, pipelines: Sequence[JobPipeline]) -> list[JobPipelineRead]:
    """Present several pipelines with a fixed number of queries."""
    stages = repository.map_stages(session, pipeline_ids=[each.id for each in pipelines])
    names = _Names(session, [stage for found in stages.values() for stage in found])
    return [_describe(pipeline, stages.get(pipeline.id, []), names) for pipeline in pipelines]


class _Names:
    """Jobs, models and pipelines that stages lead to."""

    def __init__(self, session: Session, stages: Iterable[PipelineStage]) -> None:
        found = list(stages)
        self._jobs = map_jobs(session, job_ids={each.job_id for each in found if each.job_id})
        exports = {
            str(job.export_as["job_id"])
            for job in self._jobs.values()
            if job.export_as and job.export_as.get("job_id")
        }
        self._jobs |= map_jobs(session, job_ids=exports)
        self._models = map_model_names(session, model_ids={each.model_id for each in found if each.model_id})
        self._pipelines = repository.map_names(
            session, pipeline_ids={each.reused_from for each in found if each.reused_from}
        )

    def job(self, job_id: str | None) -> StageJob | None:
        if job_id is None:
            return None
        job = self._jobs.get(job_id)
        if job is None:
            return StageJob(id=job_id, name=None, state=None, progress=None, eta_s=None)
        return StageJob(
            id=job.id,
            name=job.name,
            state=job.state,
            progress=present_progress(job),
            eta_s=estimate_eta_s(job),
        )

    def export_job(self, job_id: str | None) -> StageJob | None:
        job: Job | None = self._jobs.get(job_id) if job_id else None
        return self.job(job.export_as.get("job_id")) if job is not None and job.export_as else None

    def model(self, model_id: str | None) -> NamedReference | None:
        return NamedReference(id=model_id, name=self._models.get(model_id)) if model_id else None

    def pipeline(self, pipeline_id: str | None) -> NamedReference | None:
        return NamedReference(id=pipeline_id, name=self._pipelines.get(pipeline_id)) if pipeline_id else None


def _describe(pipeline: JobPipeline, stages: list[PipelineStage], names: _Names) -> JobPipelineRead:
    state = PipelineState(pipeline.state)
    asked = {stage.stage_id: StageCreate.model_validate(stage.document) for stage in stages}
    needs = {name: request.all_needs for name, request in asked.items()}
    states = {stage.stage_id: StageState(stage.state) for stage in stages}
    return JobPipelineRead(
        id=pipeline.id,
        name=pipeline.name,
        description=pipeline.description,
        state=state,
        stages=[
            StageRead(
                id=stage.stage_id,
                title=asked[stage.stage_id].title or stage.stage_id,
                kind=asked[stage.stage_id].kind,
                state=states[stage.stage_id],
                needs=needs[stage.stage_id],
                recipe=asked[stage.stage_id].recipe,
                request=asked[stage.stage_id],
                job=names.job(stage.job_id),
                export_job=names.export_job(stage.job_id),
                evaluation_id=stage.evaluation_id,
                model=names.model(stage.model_id),
                fingerprint=stage.fingerprint,
                reused_from=names.pipeline(stage.reused_from),
                reason=stage.reason,
                cause=stage.cause,
                hint=find_hint(stage.cause),
                started_at=stage.started_at,
                finished_at=stage.finished_at,
                can_rerun=can_rerun(stage.stage_id, states, needs),
            )
            for stage in stages
        ],
        can_start=state not in _UNDER_WAY,
        can_stop=state is PipelineState.RUNNING,
        can_delete=state not in _UNDER_WAY,
        created_at=pipeline.created_at,
        started_at=pipeline.started_at,
        finished_at=pipeline.finished_at,
    )


def can_rerun(stage: str, states: dict[str, StageState], needs: dict[str, list[str]]) -> bool:
    """Check that the stage has ended, what it needs is there, and nothing that depends on it runs."""
    involved = {stage, *find_behind(stage, needs)}
    return (
        states[stage] is not StageState.WAITING
        and all(states[each] is not StageState.RUNNING for each in involved)
        and all(states[need] in DONE for need in needs[stage])
    )
