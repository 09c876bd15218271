"""From a job's choices to a complete, checked configuration of the engine.

The preview and the submission call ``compose``. What the submission gets is stored (``stored.py``), and each
launch adds what is known only then (``launch_part.py``): what a person has seen is what runs.
Later settings win: what the recipe fixes, its parameters, the preset's settings, the
platform's defaults, the person's own settings, and last what the platform alone decides.
"""

from typing import Any

from trellis_contracts.recipe import Engine, Preset, Recipe

from trellis_recipes import mapping, platform_defaults, retrieval_mapping, trl_mapping
from trellis_recipes.automatic import HELD_OUT, fill_automatic, hold_out_fewer
from trellis_recipes.catalogue import UnknownRecipe, get_recipe, list_recipes
from trellis_recipes.checks import check_config
from trellis_recipes.checks.learning_rate import check_learning_rate
from trellis_recipes.checks.nodes import check_nodes
from trellis_recipes.engine_config import build_config, find_inexpressible, write_config
from trellis_recipes.issues import Issue, nearest
from trellis_recipes.launch_part import launch_settings, validation_file
from trellis_recipes.memory.estimate import Machine, estimate_memory
from trellis_recipes.memory.settings import IncompleteConfiguration
from trellis_recipes.overrides import check_overrides, check_parameter_texts
from trellis_recipes.recipe_parameters import Value, resolve_parameters
from trellis_recipes.request import ComposeRequest, Composition
from trellis_recipes.schemas import schema_of

__all__ = ["ComposeRequest", "Composition", "Issue", "compose"]

#: From this size on a model on a CPU takes the preset of real models.
SMALL_PARAMETERS = 10_000_000
#: The presets for 80 GB suit no smaller card: such cards report 79.6 GiB and more.
_LARGE_GPU_BYTES = 79 * 1024**3
_MACHINES = {"cpu": "CPUs", "cuda": "GPUs"}


def compose(request: ComposeRequest) -> Composition:
    """Compose the engine configuration for a request.

    A person's mistakes never raise; they are in ``errors``. The first call for an
    engine reads verl's files (about 0.4 s), later ones take a few milliseconds.
    """
    try:
        recipe = get_recipe(request.recipe)
    except UnknownRecipe as error:
        suggestion = nearest(request.recipe, (recipe.id for recipe in list_recipes()))
        issue = Issue(code="unknown_recipe", field="recipe", message=str(error), suggestion=suggestion)
        return Composition(engine=Engine.VERL_PPO, errors=[issue])
    preset, errors = _choose_preset(recipe, request)
    parameters, parameter_errors = resolve_parameters(recipe, preset, request.params)
    if "seed" in parameters and parameters["seed"] is None:
        parameters["seed"] = request.seed
    has_fewer = hold_out_fewer(request, parameters)
    trl_mapping.apply_loss_defaults(recipe, preset, request, parameters)
    schema = schema_of(recipe)
    own, override_errors = check_overrides(schema, request.overrides)
    env = platform_defaults.environment(recipe.engine, request.platform)

    def measure(trial: dict[str, Value]) -> int | None:
        launch = launch_settings(recipe.engine, request, gpus=request.gpus, parameters=trial)
        config = build_config(schema, {**_settings(recipe, preset, request, trial, own), **launch})
        return _needed_memory(recipe, request, config, env)

    parameters, derived = fill_automatic(recipe, request, parameters, measure)
    derived = sorted([*derived, HELD_OUT]) if has_fewer else derived
    inexpressible = find_inexpressible(request, parameters) + check_parameter_texts(recipe, parameters)
    errors += parameter_errors + override_errors + inexpressible
    composition = Composition(
        engine=recipe.engine,
        preset=preset.id if preset else None,
        params=parameters,
        derived=derived,
        settings=_settings(recipe, preset, request, parameters, own),
        env=env,
        errors=errors,
    )
    if not inexpressible:
        launch = launch_settings(recipe.engine, request, gpus=request.gpus, parameters=parameters)
        write_config(
            composition, schema, launch, recipe=recipe.id, platform=request.platform, gpus=request.gpus
        )
    composition.warnings += _warnings(recipe, preset, request, own)
    _check(composition, recipe, preset, request)
    return composition


def default_preset(
    recipe: Recipe,
    platform: str,
    gpus: int,
    *,
    device_memory_bytes: int | None = None,
    parameters: int | None = None,
) -> Preset | None:
    """Choose the recipe's preset for a machine: by GPU memory, or by model size on a CPU.

    Where the GPUs' memory is not known, eight of them are taken for large ones and fewer for small ones.
    """
    presets = {preset.id: preset for preset in recipe.presets}
    is_large = gpus >= 8 if device_memory_bytes is None else device_memory_bytes >= _LARGE_GPU_BYTES
    order: tuple[str, ...]
    if platform == "cpu":
        order = ("cpu-small", "cpu-tiny") if (parameters or 0) >= SMALL_PARAMETERS else ("cpu-tiny",)
    elif not is_large:
        order = ("gpu-24gb", "gpu-80gb")
    else:
        order = ("gpu-8x80gb", "gpu-80gb", "gpu-24gb") if gpus >= 8 else ("gpu-80gb", "gpu-24gb")
    return next((presets[name] for name in order if name in presets), None)


def _find_default_preset(recipe: Recipe, request: ComposeRequest) -> Preset | None:
    return default_preset(
        recipe,
        request.platform,
        request.gpus,
        device_memory_bytes=request.device_memory_bytes,
        parameters=request.parameters,
    )


def _choose_preset(recipe: Recipe, request: ComposeRequest) -> tuple[Preset | None, list[Issue]]:
    default = _find_default_preset(recipe, request)
    if request.preset is None:
        return default, []
    for preset in recipe.presets:
        if preset.id == request.preset:
            return preset, []
    names = [preset.id for preset in recipe.presets]
    message = f"The recipe '{recipe.id}' has no preset '{request.preset}'. Presets: {', '.join(names)}."
    suggestion = nearest(request.preset, names)
    issue = Issue(code="unknown_preset", field="preset", message=message, suggestion=suggestion)
    return default, [issue]


def _settings(
    recipe: Recipe,
    preset: Preset | None,
    request: ComposeRequest,
    parameters: dict[str, Value],
    own: dict[str, Any],
) -> dict[str, Any]:
    """Return all settings but those of the launch part, by dotted key, in the order in which they apply."""
    has_validation = validation_file(request, parameters) is not None
    if recipe.engine is Engine.TRL:
        return trl_mapping.settings_of(
            recipe, preset, request, parameters, own, has_validation=has_validation
        )
    if recipe.engine is Engine.RETRIEVAL:
        return retrieval_mapping.settings_of(recipe, preset, request, parameters, own)
    settings = {
        **recipe.fixed,
        **mapping.engine_settings(recipe.engine, parameters),
        **mapping.adapter_settings(recipe.engine, parameters, request.platform),
        **mapping.plain_settings(recipe, parameters),
        **mapping.algorithm_settings(parameters),
        **mapping.run_settings(recipe.engine, parameters, has_validation),
        **(preset.overrides if preset else {}),
        **platform_defaults.engine_defaults(
            recipe.engine,
            request.platform,
            _largest_weight(request),
            has_flash_attention=request.has_flash_attention,
        ),
        **own,
    }
    derived = mapping.derived_settings(recipe.engine, settings)
    platform = mapping.platform_settings(recipe.engine, request, has_validation=has_validation)
    return {**derived, **settings, **platform}


def _needed_memory(
    recipe: Recipe, request: ComposeRequest, config: dict[str, Any], env: dict[str, str]
) -> int | None:
    """Estimate the bytes on one GPU, or of all processes on a CPU; None where settings do not tell."""
    if request.architecture is None:
        return None
    try:
        estimate = estimate_memory(
            request.architecture,
            engine=recipe.engine,
            recipe=recipe.id,
            config=config,
            platform=request.platform,
            gpus=request.gpus,
            env=env,
            parameter_count=request.parameter_count,
            machine=Machine(request.device_memory_bytes),
        )
    except IncompleteConfiguration:
        return None
    return estimate.peak_bytes if request.platform == "cpu" else estimate.per_gpu_bytes


def _largest_weight(request: ComposeRequest) -> int | None:
    return request.architecture.largest_weight if request.architecture else None


def _warnings(
    recipe: Recipe, preset: Preset | None, request: ComposeRequest, own: dict[str, Any]
) -> list[Issue]:
    warnings = []
    if preset is not None and preset.gpus > request.gpus:
        message = f"Preset '{preset.id}' is designed for {preset.gpus} GPUs; the job has {request.gpus}."
        warnings.append(Issue(code="preset_gpus", field="preset", message=message))
    if preset is not None and preset.platform not in (None, request.platform):
        made_for, here = (_MACHINES[name] for name in (preset.platform, request.platform))
        message = f"Preset '{preset.id}' has sizes for {made_for}; the job runs on {here}."
        suggestion = _find_default_preset(recipe, request)
        warnings.append(
            Issue(
                code="preset_platform",
                field="preset",
                message=message,
                suggestion=suggestion.id if suggestion else None,
            )
        )
    parameter_of = {key: parameter.name for parameter in recipe.parameters for key in parameter.engine_keys}
    for key in own:
        if key in parameter_of:
            message = f"This overrides the parameter '{parameter_of[key]}'."
            field = f"overrides.{key}"
            warnings.append(
                Issue(code="shadows_parameter", field=field, message=message, suggestion=parameter_of[key])
            )
        elif key in recipe.fixed and own[key] != recipe.fixed[key]:
            message = (
                f"{key}={recipe.fixed[key]} defines '{recipe.id}'; with a different value it is "
                "a different algorithm."
            )
            warnings.append(Issue(code="changes_algorithm", field=f"overrides.{key}", message=message))
    return warnings


def _check(composition: Composition, recipe: Recipe, preset: Preset | None, request: ComposeRequest) -> None:
    """Run the cross-checks, unless the values themselves are already wrong."""
    if problem := check_nodes(composition.engine, request.gpus, request.node_gpus):
        composition.errors.append(problem)
    if composition.errors or not composition.config:
        return
    findings = check_config(
        composition.engine,
        composition.config,
        composition.params,
        request,
        holds_out=request.validation_path is None,
    )
    check_learning_rate(findings, recipe, preset, composition.params, request)
    composition.errors += findings.errors
    composition.warnings += findings.warnings
