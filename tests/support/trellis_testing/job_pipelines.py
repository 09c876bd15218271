"""Pipelines of jobs whose jobs end as a test says: nothing trains, everything else is the platform's own."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.evaluations.models import Evaluation
from trellis_api.job_pipelines import repository
from trellis_api.job_pipelines.advance import advance
from trellis_api.job_pipelines.models import PipelineStage
from trellis_api.jobs import service
from trellis_api.jobs.models import EXPORT, Checkpoint, Job
from trellis_api.models.models import Model
from trellis_contracts.attempt import locate_checkpoints
from trellis_contracts.states import ACTIVE, JobState


@dataclass
class PipelineRig:
    """Hands to look at pipelines with, and to end what they run."""

    database: Database
    settings: Settings

    def look(self, *pipeline_ids: str) -> bool:
        """Look once at these pipelines, or at all in progress; return whether a job was queued."""
        with self.database.read() as session:
            found = pipeline_ids or tuple(repository.list_unsettled(session))
        has_begun = False
        for pipeline_id in found:
            with self.database.write() as session:
                has_begun |= advance(session, self.settings, pipeline_id=pipeline_id)
        return has_begun

    def stages(self, pipeline_id: str) -> dict[str, PipelineStage]:
        with self.database.read() as session:
            found = repository.list_stages(session, pipeline_id=pipeline_id)
            return {stage.stage_id: stage for stage in found}

    def states(self, pipeline_id: str) -> dict[str, str]:
        return {name: stage.state for name, stage in self.stages(pipeline_id).items()}

    def end(self, job_id: str, state: JobState = JobState.SUCCEEDED, **why: Any) -> None:
        """Let a job end as the reconciler would settle it; one that succeeds leaves what it was to leave."""
        from trellis_api.jobs.exports import service as exports

        with self.database.write() as session:
            job = session.get(Job, job_id)
            assert job is not None
            assert job.state in ACTIVE
            if job.state == JobState.QUEUED:
                service.claim_for_launch(session, job_id=job_id)
            if state == JobState.SUCCEEDED:
                _leave_results(session, self.settings, job)
            service.settle(session, job_id=job_id, attempt=job.attempt, state=state, **why)
            exports.queue_promised(session, job=job, settings=self.settings)

    def end_stage(
        self, pipeline_id: str, stage_id: str, state: JobState = JobState.SUCCEEDED, **why: Any
    ) -> None:
        """Let the job of a stage end, and the export behind it too where it succeeds."""
        job_id = self.stages(pipeline_id)[stage_id].job_id
        assert job_id is not None
        self.end(job_id, state, **why)
        with self.database.read() as session:
            job = session.get(Job, job_id)
            export_id = (job.export_as or {}).get("job_id") if job else None
        if export_id:
            self.end(export_id)

    def list_jobs(self) -> list[Job]:
        with self.database.read() as session:
            return list(session.exec(select(Job).order_by(col(Job.created_at))))


def _leave_results(session: Session, settings: Settings, job: Job) -> None:
    if job.kind == EXPORT and job.export is not None:
        path = f"models/{job.export['model_id']}"
        (settings.data_root / path).mkdir(parents=True, exist_ok=True)
        session.add(
            Model(
                id=job.export["model_id"],
                name=job.export["name"],
                state="ready",
                source={"kind": "local", "path": path},
                lineage={},
                path=path,
                sha256=new_id("sha"),
                warnings=[],
            )
        )
    elif job.evaluation_id is not None:
        row = session.get(Evaluation, job.evaluation_id)
        assert row is not None
        row.results = []
        session.add(row)
    else:
        folder = locate_checkpoints(settings.data_root, job.id) / "global_step_1" / "huggingface"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.safetensors").write_bytes(bytes(8))
        path = str(folder.parent.relative_to(settings.data_root))
        session.merge(
            Checkpoint(
                job_id=job.id, step=1, attempt=job.attempt, path=path, hf_path=f"{path}/huggingface",
                size_bytes=8, created_at=utc_now(),
            )
        )  # fmt: skip
    session.flush()
