"""What the process of an endpoint is told: which weights, under which name, with which bounds."""

from sqlmodel import Session
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository
from trellis_api.endpoints.adapters import find_source, is_adapter
from trellis_api.endpoints.errors import EndpointNotFound
from trellis_api.endpoints.models import Endpoint
from trellis_api.evaluations.targets import is_encoder
from trellis_api.jobs import service
from trellis_api.jobs.errors import CheckpointNotFound
from trellis_api.jobs.models import Job
from trellis_api.models.errors import ModelNotReady
from trellis_api.models.repository import find_model
from trellis_contracts.evaluation import CheckpointSource
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec, ServeTask
from trellis_recipes.platform_defaults import environment

from trellis_workers.jobs.export_spec import describe_base

#: The reply names adapters to load: for those a person waits.
_HEARTBEAT_S = 2.0


def build_serve_spec(session: Session, settings: Settings, job: Job) -> JobSpec:
    """Build the spec of an endpoint; raises ``DomainError`` if something was deleted since the request."""
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
            checkpoint=_find_weights(session, settings, row),
            tensor_parallel=max(1, job.gpus),
            max_model_len=row.max_model_len,
            max_tokens=settings.endpoint_max_tokens,
            is_encoder=_is_encoder(session, row),
            max_lora_rank=row.max_lora_rank,
            max_loras=max(1, settings.endpoint_max_adapters),
            is_replaceable=settings.replaces_weights and row.target_job_id is not None,
        ),
        ingest_url=settings.base_url,
        heartbeat_interval_s=_HEARTBEAT_S,
    )


def _is_encoder(session: Session, row: Endpoint) -> bool:
    model = find_model(session, model_id=row.target_model_id) if row.target_model_id else None
    return model is not None and is_encoder(model.architecture)


def _find_weights(session: Session, settings: Settings, row: Endpoint) -> CheckpointSource | None:
    """Return the weights to gather or merge into the base model first; None for a model served as it is."""
    if row.target_model_id is not None:
        model = find_model(session, model_id=row.target_model_id)
        if model is None or not is_adapter(model):
            return None
    elif row.target_job_id is not None and row.target_step is not None:
        service.get_usable_checkpoint(session, job_id=row.target_job_id, step=row.target_step)
    source = find_source(session, data_root=settings.data_root, row=row)
    if source is None:
        raise CheckpointNotFound(f"The files of {row.name} no longer exist.")
    return source
