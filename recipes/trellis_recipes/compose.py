"""From a job's choices to a complete, checked configuration of the engine.

The preview and the launch both call ``compose``, so what a person sees is what runs.
Later settings win: what the recipe fixes, its parameters, the preset's settings, the
platform's defaults, the person's own settings, and last what the platform alone decides.
"""

import copy
from typing import Any

from trellis_contracts.recipe import Engine, Preset, Recipe

from trellis_recipes import mapping, platform_defaults, retrieval_mapping, trl_mapping
from trellis_recipes.automatic import HELD_OUT, fill_automatic, hold_out_fewer
from trellis_recipes.catalogue import UnknownRecipe, get_recipe, list_recipes
from trellis_recipes.checks import check_config
from trellis_recipes.checks.learning_rate import check_learning_rate
from trellis_recipes.checks.nodes import check_nodes
from trellis_recipes.command import replay_command
from trellis_recipes.hydra_text import NotExpressible, override, text
from trellis_recipes.issues import Issue, nearest
from trellis_recipes.memory.estimate import Machine, estimate_memory
from trellis_recipes.memory.settings import IncompleteConfiguration
from trellis_recipes.overrides import check_overrides, check_parameter_texts
from trellis_recipes.recipe_parameters import Value, resolve_parameters
from trellis_recipes.request import ComposeRequest, Composition
from trellis_recipes.resolution import resolve
from trellis_recipes.schema import EngineSchema, Key
from trellis_recipes.schemas import schema_of

__all__ = ["ComposeRequest", "Composition", "Issue", "compose"]

#: From this size on a model on a CPU takes the preset of real models.
SMALL_PARAMETERS = 10_000_000
#: The presets for 80 GB suit no smaller card: such cards report 79.6 GiB and more.
_LARGE_GPU_BYTES = 79 * 1024**3


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
        config = _build_config(schema, _settings(recipe, preset, request, trial, own))
        return _needed_memory(recipe, request, config, env)

    parameters, derived = fill_automatic(recipe, request, parameters, measure)
    derived = sorted([*derived, HELD_OUT]) if has_fewer else derived
    inexpressible = _inexpressible(request, parameters) + check_parameter_texts(recipe, parameters)
    errors += parameter_errors + override_errors + inexpressible
    composition = Composition(
        engine=recipe.engine,
        preset=preset.id if preset else None,
        params=parameters,
        derived=derived,
        env=env,
        errors=errors,
    )
    settings = _settings(recipe, preset, request, parameters, own)
    if not inexpressible:
        _write(composition, schema, settings, request)
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


def _choose_preset(recipe: Recipe, request: ComposeRequest) -> tuple[Preset | None, list[Issue]]:
    default = default_preset(
        recipe,
        request.platform,
        request.gpus,
        device_memory_bytes=request.device_memory_bytes,
        parameters=request.parameters,
    )
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
    """All settings by dotted key, in the order in which they apply."""
    validation_path = mapping.validation_file(request, parameters)
    if recipe.engine is Engine.TRL:
        return trl_mapping.settings_of(
            recipe, preset, request, parameters, own, validation_path=validation_path
        )
    if recipe.engine is Engine.RETRIEVAL:
        return retrieval_mapping.settings_of(
            recipe, preset, request, parameters, own, validation_path=validation_path
        )
    settings = {
        **recipe.fixed,
        **mapping.engine_settings(recipe.engine, parameters),
        **mapping.adapter_settings(recipe.engine, parameters, request.platform),
        **mapping.plain_settings(recipe, parameters),
        **mapping.algorithm_settings(parameters),
        **mapping.run_settings(recipe.engine, parameters, validation_path is not None),
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
    platform = mapping.platform_settings(recipe.engine, request, validation_path)
    return {**derived, **settings, **platform}


def _write(
    composition: Composition, schema: EngineSchema, settings: dict[str, Any], request: ComposeRequest
) -> None:
    """Fill in overrides, resolved configuration and command."""
    lines = [
        override(dotted, value, is_new=_require_key(schema, dotted).is_new)
        for dotted, value in settings.items()
    ]
    cluster = platform_defaults.own_cluster_settings(schema.engine, request.platform, request.gpus)
    alone = [
        override(dotted, value, is_new=key.is_new)
        for dotted, value in cluster.items()
        if (key := schema.find(dotted)) is not None
    ]
    composition.engine_overrides = lines
    composition.config = _build_config(schema, settings)
    composition.command = replay_command(
        schema.engine, lines + alone, composition.env, gpus=request.gpus, recipe=request.recipe
    )


def _build_config(schema: EngineSchema, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's default configuration with these settings applied and interpolations resolved."""
    tree = copy.deepcopy(schema.tree)
    for dotted, value in settings.items():
        _require_key(schema, dotted)
        _place(tree, dotted, value)
    return resolve(tree)


def _require_key(schema: EngineSchema, dotted: str) -> Key:
    key = schema.find(dotted)
    if key is None:  # the recipe or the platform is at fault, not the person
        raise LookupError(f"The installed engine ({schema.engine}) has no setting '{dotted}'.")
    return key


def _needed_memory(
    recipe: Recipe, request: ComposeRequest, config: dict[str, Any], env: dict[str, str]
) -> int | None:
    """Bytes on one GPU, or of all processes on a CPU platform; None where settings do not tell."""
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


def _place(tree: dict[str, Any], dotted: str, value: Any) -> None:
    *groups, name = dotted.split(".")
    for group in groups:
        below = tree.get(group)
        if not isinstance(below, dict):
            below = tree[group] = {}
        tree = below
    tree[name] = copy.deepcopy(value)


def _warnings(
    recipe: Recipe, preset: Preset | None, request: ComposeRequest, own: dict[str, Any]
) -> list[Issue]:
    warnings = []
    if preset is not None and preset.gpus > request.gpus:
        message = f"Preset '{preset.id}' is designed for {preset.gpus} GPUs; the job has {request.gpus}."
        warnings.append(Issue(code="preset_gpus", field="preset", message=message))
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


def _inexpressible(request: ComposeRequest, parameters: dict[str, Value]) -> list[Issue]:
    """Strings that the engine would not receive as they are."""
    paths = {
        "model_path": request.model_path,
        "train_path": request.train_path,
        "validation_path": request.validation_path,
        "checkpoint_dir": request.checkpoint_dir,
        "resume_from": request.resume_from,
    }
    issues = []
    for field, value in {**paths, **{f"params.{name}": value for name, value in parameters.items()}}.items():
        try:
            text(value)
        except NotExpressible as error:
            message = f"{field.removeprefix('params.')}: {error}."
            issues.append(Issue(code="invalid_value", field=field, message=message))
    return issues


def _check(composition: Composition, recipe: Recipe, preset: Preset | None, request: ComposeRequest) -> None:
    """Cross-checks; left out where the values themselves are already wrong."""
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
