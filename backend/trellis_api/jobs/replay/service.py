"""Makes a run's manifest a job again: the same weights, rows, recipe, parameters and seed."""

from typing import Any

from sqlmodel import Session, col, select
from trellis_contracts.recipe import DataFormat
from trellis_recipes.catalogue import UnknownRecipe, get_recipe
from trellis_recipes.issues import Issue

from trellis_api.core.errors import DomainError
from trellis_api.core.redaction import MASK
from trellis_api.core.settings import Settings
from trellis_api.jobs import submit
from trellis_api.jobs.fit.schemas import DataFit
from trellis_api.jobs.models import Attempt, Job
from trellis_api.jobs.replay.comparing import (
    compare_machines,
    compare_rewards,
    compare_settings,
    is_same,
    show,
)
from trellis_api.jobs.replay.errors import CannotReplay
from trellis_api.jobs.replay.matching import FoundRows, match_model, match_rows
from trellis_api.jobs.replay.schemas import (
    ManifestRows,
    ReplayCreate,
    ReplayDifference,
    ReplayManifest,
    ReplayPlan,
)
from trellis_api.jobs.repository import find_job
from trellis_api.jobs.schemas import JobCreate, JobPreview, Resources
from trellis_api.models.models import Model
from trellis_api.rewards.resources import as_terms, find_resources

#: In the place of a whole secret, by the run; Markdown has the same three characters.
_RUNS_MASK = "***"
#: Newest attempts that are looked at for one with a manifest.
_LOOKED_AT = 20


def plan(session: Session, settings: Settings, *, wanted: ReplayCreate) -> ReplayPlan:
    """Plan the replay: the request to launch, the differences and the problems. Changes nothing."""
    manifest = wanted.manifest
    problems, differences = _find_masked(manifest), _compare_start(settings, manifest)
    if isinstance(recipe_problem := _check_recipe(manifest, differences), Issue):
        problems.append(recipe_problem)
    model = match_model(session, manifest.model)
    rows = match_rows(session, manifest.train_data, field="train_data")
    validation = (
        None
        if manifest.validation_data is None
        else match_rows(session, manifest.validation_data, field="validation_data")
    )
    problems += [each for each in (model, rows, validation) if isinstance(each, Issue)]
    differences += compare_machines(manifest, _read_newest_manifest(session, besides=manifest.job_id))
    if isinstance(model, Issue) or isinstance(rows, Issue) or isinstance(validation, Issue) or problems:
        return ReplayPlan(request=None, differences=differences, problems=problems, warnings=[])
    differences += _compare_inputs(manifest, model, rows, validation)
    request = _make_request(wanted, model, rows, validation)
    try:
        request, composed = _settle(session, settings, manifest=manifest, request=request)
    except DomainError as error:
        issue = Issue(code=error.code, field="", message=error.message)
        return ReplayPlan(request=request, differences=differences, problems=[issue], warnings=[])
    differences += _compare_composed(manifest, composed)
    differences += _compare_rewards(session, settings, manifest)
    return ReplayPlan(
        request=request, differences=differences, problems=composed.errors, warnings=composed.warnings
    )


def replay(session: Session, settings: Settings, *, wanted: ReplayCreate, planned: ReplayPlan) -> Job:
    """Queue the run as planned; ``CannotReplay`` with everything that stands against it."""
    if planned.request is None or planned.problems:
        details = [each.model_dump() for each in planned.problems]
        raise CannotReplay(f"The run can't be repeated: {planned.problems[0].message}", details)
    source = find_job(session, job_id=wanted.manifest.job_id or "")
    return submit.submit(
        session, request=planned.request, settings=settings, cloned_from=source.id if source else None
    )


def _make_request(
    wanted: ReplayCreate, model: Model, rows: FoundRows, validation: FoundRows | None
) -> JobCreate:
    manifest = wanted.manifest
    asked = manifest.request
    name = wanted.name or (asked.name if asked else None) or f"Replay of {manifest.job_id or manifest.recipe}"
    return JobCreate(
        name=name,
        recipe=manifest.recipe,
        preset=asked.preset if asked else None,
        model=model.id,
        dataset=rows.dataset_id,
        dataset_version=rows.version,
        dataset_split=rows.split,
        validation_dataset=validation.dataset_id if validation else None,
        validation_version=validation.version if validation else None,
        validation_split=validation.split if validation else None,
        overrides=asked.overrides if asked else {},
        seed=manifest.seeds.run,
        resources=Resources(gpus=manifest.hardware.gpus_asked),
    )


def _settle(
    session: Session, settings: Settings, *, manifest: ReplayManifest, request: JobCreate
) -> tuple[JobCreate, JobPreview]:
    """Say in the request what preset, recipe and detection would decide otherwise today."""
    now = submit.preview(session, request=request, settings=settings, with_forecast=False)
    changed: dict[str, Any] = {
        name: value
        for name, value in manifest.params.items()
        if name in now.params and not is_same(value, now.params[name])
    }
    update: dict[str, Any] = {"params": changed}
    update |= _settle_reading(manifest.train_data, now.data, "data_format", "columns")
    if manifest.validation_data is not None:
        fields = ("validation_data_format", "validation_columns")
        update |= _settle_reading(manifest.validation_data, now.validation_data, *fields)
    request = request.model_copy(update=update)
    return request, submit.preview(session, request=request, settings=settings, with_forecast=False)


def _settle_reading(
    rows: ManifestRows, found: DataFit | None, format_field: str, columns_field: str
) -> dict[str, DataFormat | dict[str, str] | None]:
    is_as_detected = found is not None and (found.read_as, found.columns) == (rows.format, rows.columns)
    return {} if is_as_detected else {format_field: rows.format, columns_field: rows.columns}


def _compare_composed(manifest: ReplayManifest, composed: JobPreview) -> list[ReplayDifference]:
    names = sorted({*manifest.params, *composed.params})
    differences = [
        ReplayDifference(
            what="parameter",
            name=name,
            was=show(manifest.params.get(name)),
            now=show(composed.params.get(name)),
        )
        for name in names
        if not is_same(manifest.params.get(name), composed.params.get(name))
    ]
    if manifest.config is not None and composed.config:
        differences += compare_settings(manifest.config, composed.config)
    return differences


def _compare_rewards(
    session: Session, settings: Settings, manifest: ReplayManifest
) -> list[ReplayDifference]:
    terms = as_terms(manifest.params.get("rewards"))
    if manifest.rewards is None or not terms:
        return []
    try:
        return compare_rewards(manifest.rewards, find_resources(session, settings, terms=terms))
    except DomainError:
        return []  # one is gone, which is among the errors of the composition


def _compare_inputs(
    manifest: ReplayManifest, model: Model, rows: FoundRows, validation: FoundRows | None
) -> list[ReplayDifference]:
    """List the inputs whose content has another ID here."""
    differences = []
    if model.id != manifest.model.model_id:
        pair = {"was": manifest.model.model_id, "now": model.id}
        differences.append(ReplayDifference(what="model", name="id", **pair))
    if manifest.model.sha256 is None:
        differences.append(ReplayDifference(what="model", name="sha256", was=None, now=model.sha256))
    if (was := _place(manifest.train_data)) != (now := f"{rows.dataset_id}@{rows.version}"):
        differences.append(ReplayDifference(what="data", name="version", was=was, now=now))
    if manifest.validation_data is not None and validation is not None:
        was, now = _place(manifest.validation_data), f"{validation.dataset_id}@{validation.version}"
        if was != now:
            differences.append(ReplayDifference(what="validation_data", name="version", was=was, now=now))
    return differences


def _place(rows: ManifestRows) -> str:
    return f"{rows.dataset_id}@{rows.version}"


def _compare_start(settings: Settings, manifest: ReplayManifest) -> list[ReplayDifference]:
    differences = []
    if manifest.resume_from is not None:
        was = "continued from a checkpoint"
        differences.append(
            ReplayDifference(what="start", name="checkpoint", was=was, now="from the beginning")
        )
    platform = manifest.hardware.platform
    if platform is not None and platform != settings.resolved_platform:
        pair = {"was": platform, "now": settings.resolved_platform}
        differences.append(ReplayDifference(what="hardware", name="platform", **pair))
    return differences


def _check_recipe(manifest: ReplayManifest, differences: list[ReplayDifference]) -> Issue | None:
    try:
        recipe = get_recipe(manifest.recipe)
    except UnknownRecipe:
        message = f"This platform has no recipe '{manifest.recipe}'."
        return Issue(code="unknown_recipe", field="recipe", message=message)
    if manifest.engine is not None and recipe.engine.value != manifest.engine:
        pair = {"was": manifest.engine, "now": recipe.engine.value}
        differences.append(ReplayDifference(what="engine", name=manifest.recipe, **pair))
    return None


def _find_masked(manifest: ReplayManifest) -> list[Issue]:
    """Find the parameters whose values are masked in the manifest."""
    trees = {"params": manifest.params, "overrides": manifest.request.overrides if manifest.request else {}}
    return [
        Issue(
            code="value_masked",
            field=f"{tree}.{name}",
            message=f"The manifest masks the value of {name}. Set it, and launch the job by hand.",
        )
        for tree, values in trees.items()
        for name, value in values.items()
        if _has_mask(value)
    ]


def _has_mask(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_mask(each) for each in value.values())
    if isinstance(value, list):
        return any(_has_mask(each) for each in value)
    return isinstance(value, str) and (value == _RUNS_MASK or MASK in value)


def _read_newest_manifest(session: Session, *, besides: str | None) -> dict[str, Any] | None:
    """Read the newest run's manifest, which shows what runs find on this platform now."""
    newest = select(Attempt.job_id, Attempt.manifest).order_by(col(Attempt.created_at).desc())
    for job_id, manifest in session.exec(newest.limit(_LOOKED_AT)):
        if manifest is not None and job_id != besides:
            return dict(manifest)
    return None
