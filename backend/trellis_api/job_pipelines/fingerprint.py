"""One hash of everything that a stage is made from: stages with the same one would do the same work.

Things of the platform count by what they hold, not by their ids: the same rows, weights, files and
environments give the same hash, whoever uploaded them.
"""

import hashlib
import json
from typing import Any

from sqlmodel import Session
from trellis_contracts.evaluation import AnyOrder, EngineSettings
from trellis_contracts.recipe import Recipe
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import Composition

from trellis_api.core.settings import Settings
from trellis_api.datasets.view import DatasetView
from trellis_api.environments.resources import require_environment
from trellis_api.job_pipelines.schemas import StageCreate
from trellis_api.jobs.composition import JobInputs
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_api.rewards.resources import as_terms, find_resources
from trellis_api.workflows.service import require_workflow

#: Goes into every hash; a release that trains differently raises it.
VERSION = 1


def hash_training(
    session: Session,
    settings: Settings,
    *,
    stage: StageCreate,
    job: Job,
    job_inputs: JobInputs,
    composition: Composition,
) -> str:
    """Hash a training; raises ``DomainError`` if something that it names is gone."""
    validation = job_inputs.validation_dataset
    content = {
        "kind": "train",
        # Presets, fixed settings and defaults too: a recipe that changed is another one.
        "recipe": get_recipe(job.recipe).model_dump(mode="json", exclude=set(Recipe.old_names)),
        "preset": composition.preset,
        "params": composition.params,
        "overrides": job.overrides,
        "platform": settings.resolved_platform,
        "gpus": job.gpus,
        "seed": job.seed,
        "model": hash_model(job_inputs.model),
        "data": _describe_rows(job_inputs.dataset),
        "validation": _describe_rows(validation) if validation else None,
        "columns": job.data_columns,
        "data_format": job.data_format,
        **_describe_validation(job),
        "export": [stage.exports, stage.best_by, stage.mode],
    }
    return _hash(content, _hash_named(session, settings, job))


def hash_evaluation(
    settings: Settings, *, orders: list[AnyOrder], engine: EngineSettings, seed: int, model: Model
) -> str:
    """Hash an evaluation; its orders name the versions of rows and benchmarks."""
    content = {
        "kind": "evaluate",
        "orders": [order.model_dump(mode="json") for order in orders],
        "engine": engine.model_dump(mode="json"),
        "platform": settings.resolved_platform,
        "seed": seed,
        "model": hash_model(model),
    }
    return _hash(content, {})


def hash_model(model: Model) -> str:
    """Return the hash of the model's weights, or its id if these were never hashed."""
    return model.sha256 or model.id


def _hash_named(session: Session, settings: Settings, job: Job) -> dict[str, str]:
    """Map the ids of what a job's parameters name to the hashes of their contents."""
    environment = require_environment(session, recipe=job.recipe, params=job.params)
    workflow = require_workflow(session, job.params)
    rewards = find_resources(session, settings, terms=as_terms(job.params.get("rewards")))
    named = {file_id: file.sha256 for file_id, file in rewards.files.items()}
    named |= {model_id: model.sha256 or model_id for model_id, model in rewards.models.items()}
    if environment is not None:
        named[environment.id] = environment.sha256 or environment.id
    if workflow is not None:
        named[workflow.id] = f"{workflow.sha256}:{workflow.function}"
    return named


def _describe_rows(rows: DatasetView) -> list[Any]:
    return [rows.sha256, rows.split, rows.row_count, rows.format, rows.format_columns]


def _describe_validation(job: Job) -> dict[str, Any]:
    """Describe how validation rows are read; empty if unset, so that old hashes stay the same."""
    if not job.validation_columns and job.validation_data_format is None:
        return {}
    return {"validation_reading": [job.validation_data_format, job.validation_columns]}


def _hash(content: dict[str, Any], named: dict[str, str]) -> str:
    text = json.dumps({"version": VERSION, **content}, sort_keys=True, default=str)
    for identifier, digest in named.items():
        text = text.replace(json.dumps(identifier), json.dumps(digest))
    return hashlib.sha256(text.encode()).hexdigest()
