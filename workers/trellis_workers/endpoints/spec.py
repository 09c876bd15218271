"""What the process of an endpoint is told: which weights, under which name, with which bounds."""

from sqlmodel import Session
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository
from trellis_api.endpoints.errors import EndpointNotFound
from trellis_api.endpoints.models import Endpoint
from trellis_api.jobs import service
from trellis_api.jobs.errors import CheckpointNotFound
from trellis_api.jobs.models import Job
from trellis_api.models.errors import ModelNotReady
from trellis_contracts.evaluation import CheckpointSource
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec, ServeTask
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.platform_defaults import environment

from trellis_workers.jobs.export_spec import describe_base


def build_serve_spec(session: Session, settings: Settings, job: Job) -> JobSpec:
    """The spec of an endpoint; raises ``DomainError`` where something has gone since it was asked for."""
    row = repository.find_by_job(session, job_id=job.id)
    if row is None:
        raise EndpointNotFound(job.id)
    platform, model = settings.resolved_platform, describe_base(session, settings, job)
    if row.target_model_id is not None and not model.path:
        raise ModelNotReady(
            f"The model '{row.name}' was deleted or its files are missing.", {"model": row.target_model_id}
        )
    return JobSpec(
        job_id=job.id,
        attempt=job.attempt,
        name=job.name,
        recipe=job.recipe,
        engine=Engine.SERVE,
        platform=platform,
        gpus=job.gpus,
        seed=job.seed,
        params={},
        engine_overrides=[],
        env=environment(Engine.SERVE, platform),
        model=model,
        attempt_dir=str(settings.attempt_dir(job.id, job.attempt)),
        checkpoint_dir=str(settings.checkpoint_dir(job.id)),
        serve=ServeTask(
            endpoint_id=row.id,
            served_name=row.name,
            checkpoint=_find_checkpoint(session, settings, row),
            tensor_parallel=max(1, job.gpus),
            max_model_len=row.max_model_len,
            max_tokens=settings.endpoint_max_tokens,
        ),
        ingest_url=settings.base_url,
    )


def _find_checkpoint(session: Session, settings: Settings, row: Endpoint) -> CheckpointSource | None:
    if row.target_job_id is None or row.target_step is None:
        return None
    checkpoint = service.get_usable_checkpoint(session, job_id=row.target_job_id, step=row.target_step)
    folder = service.find_folder(checkpoint, checkpoint.path, data_root=settings.data_root)
    if folder is None:
        raise CheckpointNotFound(f"The checkpoint files of step {row.target_step} no longer exist.")
    source = service.get_job(session, job_id=row.target_job_id)
    return CheckpointSource(
        job_id=source.id, engine=get_recipe(source.recipe).engine, step=row.target_step, path=str(folder)
    )
