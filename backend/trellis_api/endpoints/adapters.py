"""Adapters that the engine of their base model can serve beside it and beside each other (vLLM's LoRA)."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlmodel import Session
from trellis_contracts.evaluation import AdapterTask, CheckpointSource
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import get_recipe

from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository
from trellis_api.endpoints.models import Endpoint
from trellis_api.evaluations.schemas import ModelTarget, Target
from trellis_api.jobs import service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.errors import CheckpointNotFound
from trellis_api.jobs.models import SERVE, Job
from trellis_api.jobs.repository import find_checkpoint, find_job, list_jobs_from_model
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model, lock_model

#: The ranks that vLLM sizes its buffers for.
_RANKS = (16, 32, 64, 128, 256, 320, 512)
_RANK_PARAMETER = "lora_rank"
#: Trainings of a base model that are looked at for the ranks of their adapters, newest first.
_MAX_JOBS = 500
_ADAPTER = "adapter"


@dataclass(frozen=True)
class Adapter:
    """An adapter and what its base model's engine has to know to serve it."""

    base: Model
    rank: int
    #: Whether vLLM can add it to its base at run time; others are merged into a copy of the base.
    is_plain: bool
    #: Of all that decides whether an engine can load it: its files, and the operator's limits.
    digest: str


def is_adapter(model: Model) -> bool:
    """Tell whether a model is only an adapter."""
    return model.lineage.get("form") == _ADAPTER


def find_adapter(session: Session, settings: Settings, target: Target) -> Adapter | None:
    """Return the target's adapter, with its base model locked; None for whole weights, and without a base."""
    if isinstance(target, ModelTarget):
        model = find_model(session, model_id=target.model)
        if model is None or not model.path or not is_adapter(model):
            return None
        base_id, folder = str(model.parent_model_id), settings.data_root / model.path
    else:
        job = service.get_locked_job(session, job_id=target.job)
        row = find_checkpoint(session, job_id=job.id, step=target.step)
        found = service.find_folder(row, row.path, data_root=settings.data_root) if row else None
        if found is None or not checkpoints.holds_adapter(found):
            return None
        base_id, folder = job.model_id, found
    base = lock_model(session, model_id=base_id)
    if base is None or not base.path:
        return None
    config = _read_config(folder)
    return Adapter(
        base, rank=_find_rank(config), is_plain=_is_plain(config), digest=_compute_digest(settings, folder)
    )


def choose_max_rank(session: Session, settings: Settings, *, base_id: str, at_least: int = 0) -> int | None:
    """Choose the LoRA rank for a base model's engine: its largest adapter's; None if it has no adapter."""
    if settings.endpoint_max_adapters == 0:
        return None
    jobs = list_jobs_from_model(session, model_id=base_id, limit=_MAX_JOBS)
    ranks = [job.params.get(_RANK_PARAMETER) for job in jobs]
    known = [rank for rank in ranks if isinstance(rank, int) and 0 < rank <= _RANKS[-1]]
    largest = max([*known, at_least])
    return next((rank for rank in _RANKS if rank >= largest), None) if largest > 0 else None


def list_adapters(session: Session, *, data_root: Path, job: Job) -> list[AdapterTask]:
    """List what the engine of a job has to serve beside its model, or in its place."""
    if job.kind != SERVE:
        return []
    return [
        AdapterTask(
            endpoint_id=row.id,
            load_id=row.load_id or "",
            served_name=row.name,
            checkpoint=find_source(session, data_root=data_root, row=row),
            replaces=row.is_takeover,
        )
        for row in repository.list_sharing(session, job_id=job.id, attempt=job.attempt)
    ]


def find_source(session: Session, *, data_root: Path, row: Endpoint) -> CheckpointSource | None:
    """Return the checkpoint, or adapter, whose weights an endpoint serves; None if its files are gone."""
    if row.target_model_id is not None:
        model = find_model(session, model_id=row.target_model_id)
        if model is None or not model.path:
            return None
        return CheckpointSource(
            job_id=model.source_job_id or "",
            engine=Engine.EXPORT,
            step=model.source_step or 0,
            path=str(data_root / model.path),
        )
    job = find_job(session, job_id=row.target_job_id) if row.target_job_id else None
    if job is None or row.target_step is None:
        return None
    checkpoint = find_checkpoint(session, job_id=job.id, step=row.target_step)
    if checkpoint is None or checkpoint.pruned_at is not None:
        return None
    folder = service.find_folder(checkpoint, checkpoint.path, data_root=data_root)
    if folder is None:
        return None
    return CheckpointSource(
        job_id=job.id, engine=get_recipe(job.recipe).engine, step=row.target_step, path=str(folder)
    )


def _read_config(folder: Path) -> dict[str, Any]:
    """Read the PEFT configuration that the trainer wrote for an adapter."""
    path = checkpoints.find_adapter_file(folder)
    try:
        found = json.loads(path.read_text()) if path else None
    except (OSError, ValueError) as error:
        raise CheckpointNotFound("The adapter's configuration can't be read.") from error
    return found if isinstance(found, dict) else {}


def _compute_digest(settings: Settings, folder: Path) -> str:
    """Compute a digest of the sizes and times of the files: rewritten files have another one."""
    try:
        stats = [(str(path.relative_to(folder)), path.stat()) for path in sorted(folder.rglob("*"))]
    except OSError as error:
        raise CheckpointNotFound("The adapter's files can't be read.") from error
    files = [(name, each.st_size, each.st_mtime_ns) for name, each in stats]
    limits = (settings.endpoint_max_adapters, settings.resolved_platform)
    return hashlib.sha256(json.dumps([limits, files]).encode()).hexdigest()


def _find_rank(config: dict[str, Any]) -> int:
    rank, pattern = config.get("r"), config.get("rank_pattern") or {}
    ranks = [rank, *pattern.values()] if isinstance(pattern, dict) else [rank]
    return max((each for each in ranks if isinstance(each, int)), default=0)


def _is_plain(config: dict[str, Any]) -> bool:
    return (
        0 < _find_rank(config) <= _RANKS[-1]
        and config.get("peft_type", "LORA") == "LORA"
        and config.get("task_type") != "SEQ_CLS"
        and config.get("bias", "none") == "none"
        and not any(
            config.get(name) for name in ("use_dora", "modules_to_save", "rank_pattern", "alpha_pattern")
        )
    )
