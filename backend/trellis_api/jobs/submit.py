"""How a job comes into being: the request is checked completely, then written as a QUEUED row."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session
from trellis_recipes.catalogue import UnknownRecipe, get_recipe
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.issues import Issue
from trellis_recipes.mapping import reward_mixture
from trellis_recipes.workflows.source import AUXILIARY

from trellis_api.core.errors import DomainError
from trellis_api.core.ids import new_id
from trellis_api.core.ray_cluster import find_nodes
from trellis_api.core.settings import Settings
from trellis_api.datasets.repository import lock_dataset
from trellis_api.datasets.view import DatasetView
from trellis_api.endpoints.auxiliary import find_auxiliary_problems, find_model_ids, list_our_models
from trellis_api.environments.resources import find_environment_problems, keep_environment
from trellis_api.jobs import configuration, repository, service
from trellis_api.jobs.composition import JobInputs, build_compose_request
from trellis_api.jobs.errors import (
    AdapterNeedsBase,
    ExportNameTaken,
    InvalidConfiguration,
    JobNotCloneable,
    TooManyGpus,
    UnknownModel,
    UnsuitableDataset,
)
from trellis_api.jobs.evaluating import request as evaluating
from trellis_api.jobs.evaluating.due import read_order
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.fit import data as data_fit
from trellis_api.jobs.fit.data_selection import DataSelection, require_rows
from trellis_api.jobs.fit.row_templates import find_row_problems
from trellis_api.jobs.fit.schemas import DataFit
from trellis_api.jobs.fit.tool_templates import find_tool_problems
from trellis_api.jobs.forecast import memory
from trellis_api.jobs.forecast import service as forecasting
from trellis_api.jobs.forecast.disk import check_disk
from trellis_api.jobs.models import TRAIN, Job
from trellis_api.jobs.names import with_names_of_parameters
from trellis_api.jobs.reporting import service as reporting
from trellis_api.jobs.reporting.requests import find_report_problems, refuse_unsendable
from trellis_api.jobs.request_fields import as_columns, read_inputs, read_plain
from trellis_api.jobs.schemas import JobClone, JobCreate, JobPreview, Resources
from trellis_api.jobs.storage import check_storage
from trellis_api.models.models import Model
from trellis_api.models.repository import find_model, lock_model
from trellis_api.models.tried_templates import find_template_problems
from trellis_api.monitoring.machine import Machine as MeasuredMachine
from trellis_api.monitoring.machine import find_device_memory
from trellis_api.rewards.resources import as_terms, find_problems, keep_resources
from trellis_api.workflows.service import find_workflow_problems, keep_workflow


def submit(
    session: Session, *, request: JobCreate, settings: Settings, cloned_from: str | None = None
) -> Job:
    """Write a QUEUED row for a request that can run; what is wrong with it raises here.

    Whether metrics can be sent is checked by who takes a client's request (``refuse_unsendable``): workers
    submit jobs too, perhaps without the key, and a job whose metrics wait for it runs all the same.
    """
    check_storage(settings)
    job = _build_job(request)
    job.cloned_from = cloned_from
    if request.export_as is not None:
        exports.check_name(session, name=request.export_as.name)
    _lock_inputs(session, job=job)
    found = _compose(session, job=job, settings=settings)
    _refuse_errors(found.composition)
    job.preset = found.composition.preset
    if request.evaluate is not None:
        evaluating.settle_order(session, settings, job=job, order=request.evaluate)
    repository.add_job(session, job=job, tags=request.tags)
    configured = configuration.configure(
        job, found.job_inputs, request=found.asked, composition=found.composition
    )
    configuration.store(session, job=job, configuration=configured)
    if request.report_to is not None:
        reporting.begin(session, job=job, wanted=request.report_to)
    service.announce(session, job=job)
    session.flush()
    return job


def preview(
    session: Session,
    *,
    request: JobCreate,
    settings: Settings,
    measured: MeasuredMachine | None = None,
    with_forecast: bool = True,
) -> JobPreview:
    """Preview what would run; mistakes are in ``errors``, but a missing model or dataset raises."""
    job = _build_job(request)
    found = _compose(session, job=job, settings=settings, is_preview=True)
    composition, issues = found.composition, found.issues
    if request.export_as is not None:
        try:
            exports.check_name(session, name=request.export_as.name)
        except ExportNameTaken as error:
            issues.append(Issue(code=error.code, field="export_as.name", message=error.message))
    issues += [
        Issue(code=problem.code, field=field, message=problem.message)
        for problem, field in find_report_problems(settings, request.report_to)
    ]
    warnings = list(composition.warnings)
    if request.evaluate is not None:
        issues += evaluating.find_errors(session, settings, order=request.evaluate)
        warnings += evaluating.find_warnings(request.evaluate, params=composition.params)
    estimated = memory.estimate(
        composition,
        recipe=job.recipe,
        model=found.job_inputs.model,
        data_root=settings.data_root,
        platform=settings.resolved_platform,
        gpus=job.gpus,
        measured=measured,
    )
    return JobPreview(
        engine=composition.engine.value,
        params=composition.params,
        derived=composition.derived,
        config=composition.config,
        engine_overrides=composition.engine_overrides,
        env=composition.env,
        command=composition.command,
        data=found.data,
        validation_data=found.validation_data,
        rewards=as_terms(reward_mixture(composition.params)),
        memory=estimated.memory,
        forecast=(
            None
            if issues or composition.errors or not with_forecast
            else forecasting.forecast(
                session,
                settings,
                job=job,
                model=found.job_inputs.model,
                composition=composition,
                request=found.asked,
            )
        ),
        warnings=[*warnings, *([estimated.problem] if estimated.problem else [])],
        errors=[*issues, *composition.errors],
    )


def clone(session: Session, *, job_id: str, changes: JobClone, settings: Settings) -> Job:
    """Submit the original's request again, with some values changed.

    Where the original reported is kept, also if the key is gone since: then the clone says so.
    """
    refuse_unsendable(settings, changes.report_to)
    original = service.get_job(session, job_id=job_id)
    if original.kind != TRAIN or original.dataset_id is None:
        raise JobNotCloneable("Only training jobs can be cloned. Start a new export or evaluation instead.")
    tags = repository.map_tags(session, job_ids=[job_id]).get(job_id, [])
    order = read_order(original)
    asked = {
        **read_inputs(original),
        **read_plain(original),
        "preset": _keep_preset(session, settings, original),
        "params": {
            **original.params,
            **with_names_of_parameters(session, changes.params, field="params"),
        },
        "overrides": {**original.overrides, **changes.overrides},
        "resources": Resources(gpus=original.gpus),
        "tags": tags if changes.tags is None else changes.tags,
        "keep_best_by": original.keep_best_by if order is None or order.best_by is None else None,
        "evaluate": order,
        "report_to": (
            changes.report_to
            if "report_to" in changes.model_fields_set
            else reporting.read_wanted(session, job_id=original.id)
        ),
    }
    if changes.name:
        asked["name"] = changes.name
    if changes.seed is not None:
        asked["seed"] = changes.seed
    request = JobCreate.model_validate(asked)
    return submit(session, request=request, settings=settings, cloned_from=original.id)


def _keep_preset(session: Session, settings: Settings, original: Job) -> str | None:
    """Return the preset that a clone asks for: not one that was chosen for another platform than the present.

    A job's row doesn't tell what was asked for from what was chosen for its machine; a preset for a size of
    model is never chosen unasked.
    """
    try:
        presets = get_recipe(original.recipe).presets
    except UnknownRecipe:
        return original.preset  # the composition says what is wrong
    preset = next((each for each in presets if each.id == original.preset), None)
    if preset is None or preset.platform in (None, settings.resolved_platform):
        return original.preset
    configured = configuration.find(session, job_id=original.id)
    was_here = configured is not None and configured.composition.platform == settings.resolved_platform
    return original.preset if was_here else None


def _build_job(request: JobCreate) -> Job:
    validation, validation_version = request.validation_dataset, request.validation_version
    if validation is None and request.validation_split:
        validation, validation_version = request.dataset, validation_version or request.dataset_version
    columns = {
        **as_columns(request),
        "validation_dataset_id": validation,
        "validation_version": validation_version,
    }
    return Job(
        id=new_id("job"),
        gpus=request.resources.gpus,
        keep_best_by=request.keep_best_by.model_dump() if request.keep_best_by else None,
        export_as=request.export_as.model_dump() if request.export_as else None,
        evaluate=request.evaluate.model_dump(mode="json") if request.evaluate else None,
        **columns,
    )


def compose_request(session: Session, *, request: JobCreate, settings: Settings) -> "Composed":
    """Compose a request before anything is written; raises as ``submit`` does."""
    found = _compose(session, job=_build_job(request), settings=settings)
    _refuse_errors(found.composition)
    return found


def _refuse_errors(composition: Composition) -> None:
    if composition.errors:
        raise InvalidConfiguration(
            composition.errors[0].message, [issue.model_dump() for issue in composition.errors]
        )


@dataclass(frozen=True)
class Composed:
    """What a request amounts to, and what of it cannot be carried out here (only of a preview)."""

    job: Job
    job_inputs: JobInputs
    data: DataFit | None
    validation_data: DataFit | None
    composition: Composition
    issues: list[Issue]
    asked: ComposeRequest


def _compose(session: Session, *, job: Job, settings: Settings, is_preview: bool = False) -> Composed:
    job_inputs = find_job_inputs(session, settings, job=job)
    _name_versions(job, job_inputs)
    data, validation_data, data_problems = _check_data(job, job_inputs)
    problems: list[tuple[DomainError, str]] = [
        *data_problems,
        *_check_slots(job, settings),
        *find_problems(session, settings, rewards=job.params.get("rewards")),
        *find_workflow_problems(session, job.params),
        *find_auxiliary_problems(session, settings, params=job.params, gpus=job.gpus),
        *find_environment_problems(session, recipe=job.recipe, params=job.params),
        *find_template_problems(settings.data_root / (job_inputs.model.path or ""), field="model"),
        *find_tool_problems(settings, job_inputs.model, recipe=job.recipe, params=job.params),
        *_check_rows(settings, job, job_inputs, data, validation_data),
    ]
    issues = []
    for error, field in problems:
        if not is_preview:
            raise error
        issues.append(Issue(code=error.code, field=field, message=error.message))
    job.device_memory_bytes = find_device_memory(settings.resolved_platform, find_nodes(settings) or ())
    asked = build_compose_request(settings, job=job, job_inputs=job_inputs, data=data)
    composition = compose(asked)
    check_disk(composition, asked, settings)
    return Composed(job, job_inputs, data, validation_data, composition, issues, asked)


def _lock_inputs(session: Session, *, job: Job) -> None:
    """Hold what the job needs until its row is written: nothing of it is deleted in between."""
    called = find_model_ids(session, list_our_models(job.params.get(AUXILIARY)))
    for model_id in sorted({job.model_id, *called}):
        lock_model(session, model_id=model_id, is_shared=True)
    for dataset_id in (job.dataset_id, job.validation_dataset_id):
        if dataset_id is not None:
            lock_dataset(session, dataset_id=dataset_id, is_shared=True)
    keep_resources(session, terms=as_terms(job.params.get("rewards")))
    keep_workflow(session, job.params)
    keep_environment(session, job.params)


def find_job_inputs(session: Session, settings: Settings, *, job: Job) -> JobInputs:
    """Return the model and datasets of a job; raises if one is missing or not ready."""
    model = _require_model(session, job.model_id)
    if not model.path:
        raise UnknownModel(
            f"The weights of {model.name} aren't downloaded yet ({model.state}).",
            [_issue("model_not_ready", "model")],
        )
    if model.lineage.get("form") == "adapter":
        message = f"{model.name} is an adapter and needs its base model. Export it as a merged model first."
        raise AdapterNeedsBase(message, [{**_issue(AdapterNeedsBase.code, "model"), "message": message}])
    validation = None
    if job.validation_dataset_id is not None:
        wanted = DataSelection(
            "validation", job.validation_dataset_id, job.validation_version, job.validation_split
        )
        validation = require_rows(session, settings, wanted)
    wanted = DataSelection("dataset", job.dataset_id or "", job.dataset_version, job.dataset_split)
    return JobInputs(
        model=model, dataset=require_rows(session, settings, wanted), validation_dataset=validation
    )


def _name_versions(job: Job, job_inputs: JobInputs) -> None:
    """Let the job say by full id what it reads: a branch may move on before it is launched."""
    data, validation = job_inputs.dataset, job_inputs.validation_dataset
    job.dataset_version, job.dataset_split = data.version, data.split
    if validation is not None:
        job.validation_version, job.validation_split = validation.version, validation.split


def _require_model(session: Session, model_id: str) -> Model:
    model = find_model(session, model_id=model_id)
    if model is None:
        raise UnknownModel(f"Model {model_id} not found.", [_issue("unknown_model", "model")])
    return model


def _issue(code: str, field: str) -> dict[str, Any]:
    return {"code": code, "field": field}


def _check_data(
    job: Job, job_inputs: JobInputs
) -> tuple[DataFit | None, DataFit | None, list[tuple[UnsuitableDataset, str]]]:
    """Check how the training and validation datasets would be read, and what is wrong with them."""
    data = _fit(job, job_inputs.dataset)
    fits = [("dataset", job_inputs.dataset, data)]
    validation_data = None
    if (validation := job_inputs.validation_dataset) is not None:
        validation_data = _fit(job, validation, split="validation")
        fits.append(("validation_dataset", validation, validation_data))
    problems = []
    for field, dataset, found in fits:
        if found is not None and not found.fits:
            problems.append((data_fit.refuse(job.recipe, dataset, found, field=field), field))
    return data, validation_data, problems


def _check_rows(
    settings: Settings,
    job: Job,
    job_inputs: JobInputs,
    data: DataFit | None,
    validation_data: DataFit | None,
) -> list[tuple[DomainError, str]]:
    """Find the rows of both datasets that the model's chat template rejects."""
    model, validation = job_inputs.model, job_inputs.validation_dataset
    found = find_row_problems(
        settings, model, job_inputs.dataset, recipe=job.recipe, data=data, field="dataset"
    )
    if validation is not None:
        found += find_row_problems(
            settings, model, validation, recipe=job.recipe, data=validation_data, field="validation_dataset"
        )
    return found


def _fit(job: Job, dataset: DatasetView, *, split: data_fit.Split = "training") -> DataFit | None:
    try:
        recipe = get_recipe(job.recipe)
    except UnknownRecipe:
        return None  # the composition says so, with the nearest name
    choice = data_fit.choice_of(job, dataset, split=split)
    return data_fit.fit(recipe, dataset, choice)


def _check_slots(job: Job, settings: Settings) -> list[tuple[TooManyGpus, str]]:
    if job.gpus <= settings.total_slots:
        return []
    message = f"The job requests {job.gpus} GPUs, but the platform has {settings.total_slots}."
    details = [{"code": TooManyGpus.code, "field": "resources.gpus", "message": message}]
    return [(TooManyGpus(message, details), "resources.gpus")]
