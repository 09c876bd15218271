"""What the process of an export job is told: which checkpoint, in which form, into which folder."""

from pathlib import Path

from sqlmodel import Session
from trellis_api.core.settings import Settings
from trellis_api.jobs import service
from trellis_api.jobs.errors import CheckpointNotFound
from trellis_api.jobs.exports.orders import ExportOrder
from trellis_api.jobs.models import Job
from trellis_api.models.repository import find_model
from trellis_api.models.service import model_folder
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import ExportTask, JobSpec, ModelSource
from trellis_recipes.platform_defaults import environment


def build_export_spec(session: Session, settings: Settings, job: Job) -> JobSpec:
    """Build the spec of an export; ``CheckpointNotFound`` if the checkpoint was deleted since the request."""
    order = ExportOrder.model_validate(job.export)
    row = service.get_usable_checkpoint(session, job_id=order.job_id, step=order.step)
    folder = service.find_folder(row, row.path, data_root=settings.data_root)
    if folder is None:
        raise CheckpointNotFound(f"The checkpoint files of step {order.step} no longer exist.")
    return JobSpec(
        job_id=job.id,
        attempt=job.attempt,
        name=job.name,
        recipe=job.recipe,
        engine=Engine.EXPORT,
        platform=settings.resolved_platform,
        gpus=0,
        seed=job.seed,
        params={},
        engine_overrides=[],
        # Weights are put together in main memory, whatever the platform trains on.
        env=environment(Engine.EXPORT, "cpu"),
        model=describe_base(session, settings, job),
        attempt_dir=str(settings.attempt_dir(job.id, job.attempt)),
        checkpoint_dir=str(settings.checkpoint_dir(job.id)),
        export=ExportTask(
            job_id=order.job_id,
            engine=order.engine,
            step=order.step,
            checkpoint_path=str(folder),
            form=order.form,
            output_path=str(model_folder(settings, order.model_id)),
        ),
        ingest_url=settings.base_url,
    )


def describe_base(session: Session, settings: Settings, job: Job) -> ModelSource:
    """Return the model that the source was trained from.

    Only adapters need it, and whole weights may outlive it.
    """
    base = find_model(session, model_id=job.model_id)
    path: Path | None = settings.data_root / base.path if base is not None and base.path else None
    return ModelSource(
        model_id=job.model_id,
        path=str(path) if path else "",
        sha256=base.sha256 if base else None,
        revision=base.revision if base else None,
    )
