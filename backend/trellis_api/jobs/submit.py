"""How a job comes into being: the request is checked completely, then written as a QUEUED row."""

import os
import shutil
from typing import Any

from sqlmodel import Session
from trellis_recipes.catalogue import UnknownRecipe, get_recipe
from trellis_recipes.compose import Composition, compose
from trellis_recipes.issues import Issue

from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.repository import find_dataset, lock_dataset
from trellis_api.jobs import repository, service
from trellis_api.jobs.composition import Ingredients, build_compose_request
from trellis_api.jobs.errors import (
    InvalidConfiguration,
    StorageFull,
    StorageUnwritable,
    TooManyGpus,
    UnknownDataset,
    UnknownModel,
    UnsuitableDataset,
)
from trellis_api.jobs.models import Job
from trellis_api.jobs.schemas import JobClone, JobCreate, JobPreview, Resources
from trellis_api.models.repository import find_model, lock_model


def submit(
    session: Session, *, request: JobCreate, settings: Settings, cloned_from: str | None = None
) -> Job:
    """Write a QUEUED row for a request that can run; everything that is wrong with it raises here."""
    check_storage(settings)
    job = _build_job(request)
    job.cloned_from = cloned_from
    _keep_ingredients(session, job=job)
    composition, _ = _compose(session, job=job, settings=settings)
    if composition.errors:
        raise InvalidConfiguration(
            composition.errors[0].message, [issue.model_dump() for issue in composition.errors]
        )
    repository.add_job(session, job=job, tags=request.tags)
    service.announce(session, job=job)
    session.flush()
    return job


def preview(session: Session, *, request: JobCreate, settings: Settings) -> JobPreview:
    """What would run; mistakes are in ``errors``, but a model or dataset that is not there raises."""
    composition, issues = _compose(session, job=_build_job(request), settings=settings, is_preview=True)
    return JobPreview(
        engine=composition.engine.value,
        params=composition.params,
        config=composition.config,
        engine_overrides=composition.engine_overrides,
        env=composition.env,
        command=composition.command,
        warnings=composition.warnings,
        errors=[*issues, *composition.errors],
    )


def clone(session: Session, *, job_id: str, changes: JobClone, settings: Settings) -> Job:
    """Submit the original's request again, with some values changed."""
    original = service.get_job(session, job_id=job_id)
    tags = repository.map_tags(session, job_ids=[job_id]).get(job_id, [])
    request = JobCreate(
        name=changes.name or original.name,
        recipe=original.recipe,
        preset=original.preset,
        model=original.model_id,
        dataset=original.dataset_id,
        validation_dataset=original.validation_dataset_id,
        params={**original.params, **changes.params},
        overrides={**original.overrides, **changes.overrides},
        seed=original.seed if changes.seed is None else changes.seed,
        resources=Resources(gpus=original.gpus),
        tags=tags if changes.tags is None else changes.tags,
        priority=original.priority,
    )
    return submit(session, request=request, settings=settings, cloned_from=original.id)


def check_storage(settings: Settings) -> None:
    """Refuse a launch that could not write: better said now than by a dead run in an hour."""
    root = settings.data_root
    if not os.access(root, os.W_OK | os.X_OK):
        raise StorageUnwritable("The platform cannot write to its data root.", {"path": str(root)})
    try:
        free_bytes = shutil.disk_usage(root).free
    except OSError as error:
        raise StorageUnwritable("The platform cannot reach its data root.", {"path": str(root)}) from error
    if free_bytes < settings.min_free_disk_bytes:
        raise StorageFull(
            "Too little disk space is left under the data root to launch a job.",
            {"free_bytes": free_bytes, "needed_bytes": settings.min_free_disk_bytes},
        )


def _build_job(request: JobCreate) -> Job:
    return Job(
        id=new_id("job"),
        name=request.name,
        recipe=request.recipe,
        preset=request.preset,
        model_id=request.model,
        dataset_id=request.dataset,
        validation_dataset_id=request.validation_dataset,
        params=request.params,
        overrides=request.overrides,
        seed=request.seed,
        gpus=request.resources.gpus,
        priority=request.priority,
    )


def _compose(
    session: Session, *, job: Job, settings: Settings, is_preview: bool = False
) -> tuple[Composition, list[Issue]]:
    ingredients = find_ingredients(session, job=job)
    problems = [*_check_formats(job, ingredients), *_check_slots(job, settings)]
    issues = []
    for error, field in problems:
        if not is_preview:
            raise error
        issues.append(Issue(code=error.code, field=field, message=error.message))
    return compose(build_compose_request(settings, job=job, ingredients=ingredients)), issues


def _keep_ingredients(session: Session, *, job: Job) -> None:
    """Hold what the job needs until its row is written: nothing of it is deleted in between."""
    lock_model(session, model_id=job.model_id, is_shared=True)
    for dataset_id in (job.dataset_id, job.validation_dataset_id):
        if dataset_id is not None:
            lock_dataset(session, dataset_id=dataset_id, is_shared=True)


def find_ingredients(session: Session, *, job: Job) -> Ingredients:
    """The model and datasets of a job; raises where one is missing or not ready."""
    model = find_model(session, model_id=job.model_id)
    if model is None:
        raise UnknownModel(f"There is no model {job.model_id}.", [_issue("unknown_model", "model")])
    if not model.path:
        raise UnknownModel(
            f"The weights of {model.name} are not here yet ({model.state}).",
            [_issue("model_not_ready", "model")],
        )
    validation = None
    if job.validation_dataset_id is not None:
        validation = _require_dataset(session, job.validation_dataset_id, "validation_dataset")
    return Ingredients(
        model=model,
        dataset=_require_dataset(session, job.dataset_id, "dataset"),
        validation_dataset=validation,
    )


def _require_dataset(session: Session, dataset_id: str, field: str) -> Dataset:
    dataset = find_dataset(session, dataset_id=dataset_id)
    if dataset is None:
        raise UnknownDataset(f"There is no dataset {dataset_id}.", [_issue("unknown_dataset", field)])
    return dataset


def _issue(code: str, field: str) -> dict[str, Any]:
    return {"code": code, "field": field}


def _check_formats(job: Job, ingredients: Ingredients) -> list[tuple[UnsuitableDataset, str]]:
    try:
        accepted = [item.value for item in get_recipe(job.recipe).data_formats]
    except UnknownRecipe:
        return []  # the composition says so, with the nearest name
    problems = []
    named = (("dataset", ingredients.dataset), ("validation_dataset", ingredients.validation_dataset))
    for field, dataset in named:
        if dataset is not None and dataset.format not in accepted:
            message = (
                f"{job.recipe} learns from {', '.join(accepted)} data; {dataset.name} is {dataset.format}."
            )
            details = [{"code": UnsuitableDataset.code, "field": field, "message": message}]
            problems.append((UnsuitableDataset(message, details), field))
    return problems


def _check_slots(job: Job, settings: Settings) -> list[tuple[TooManyGpus, str]]:
    if job.gpus <= settings.total_slots:
        return []
    message = f"The job asks for {job.gpus} GPUs and the platform has {settings.total_slots}."
    details = [{"code": TooManyGpus.code, "field": "resources.gpus", "message": message}]
    return [(TooManyGpus(message, details), "resources.gpus")]
