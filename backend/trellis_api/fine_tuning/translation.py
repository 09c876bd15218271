"""What a fine-tuning job comes to as a job of the platform: recipe, preset, parameters and rewards."""

import re
from dataclasses import dataclass
from typing import Any

from trellis_contracts.recipe import Preset, Recipe
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import default_preset

from trellis_api.core.ray_cluster import find_nodes
from trellis_api.core.settings import Settings
from trellis_api.core.texts import MAX_NAME_CHARACTERS
from trellis_api.fine_tuning.errors import FineTuningRefused
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.requests import (
    DpoHyperparameters,
    FineTuningCreate,
    Hyperparameters,
    ReinforcementHyperparameters,
)
from trellis_api.jobs.schemas import ExportAs, JobCreate
from trellis_api.models.models import Model
from trellis_api.monitoring.machine import find_device_memory

RECIPES = {"supervised": "sft", "dpo": "dpo", "reinforcement": "grpo"}
TAG = "fine-tuning-api"
#: What "auto" makes of the number of examples: three epochs, more of few examples and less of many.
_EPOCHS, _FEW_EXAMPLES, _MANY_EXAMPLES, _MOST_EPOCHS = 3, 100, 25_000, 25
#: A checkpoint an epoch, of which the last ones stay, as at OpenAI's.
_KEPT_CHECKPOINTS = 3


@dataclass(frozen=True)
class Rows:
    """A dataset to learn from or to measure on."""

    dataset_id: str
    count: int


def name_model(request: FineTuningCreate, model: Model, job_id: str) -> str:
    """Make the name ``ft:<base>:<suffix>:<id>``; a long base name is cut."""
    ending = f":{request.suffix or ''}:{job_id.removeprefix('ftjob-')}"
    base = re.sub(r"[\s:]+", "-", model.name)
    return f"ft:{base[: MAX_NAME_CHARACTERS - len('ft:') - len(ending)]}{ending}"


def build_job(
    request: FineTuningCreate,
    row: FineTuningJob,
    settings: Settings,
    *,
    model: Model,
    training: Rows,
    validation: Rows | None,
    rewards: list[dict[str, Any]] | None,
) -> tuple[JobCreate, dict[str, Any]]:
    """Build the platform's job request, and return it with the resolved hyperparameters."""
    recipe = get_recipe(RECIPES[request.method.type])
    preset = choose_preset(recipe, settings, model)
    wanted = request.method.hyperparameters
    epochs = choose_epochs(training.count) if wanted.n_epochs == "auto" else wanted.n_epochs
    batch = _choose_batch(wanted, recipe, preset, training)
    factor = 1.0 if wanted.learning_rate_multiplier == "auto" else wanted.learning_rate_multiplier
    steps_an_epoch = max(1, training.count // batch)
    chosen: dict[str, Any] = {
        "n_epochs": epochs,
        "batch_size": batch,
        "learning_rate_multiplier": factor,
    }
    params: dict[str, Any] = {
        "epochs": epochs,
        "total_steps": None,
        "batch_size": batch,
        "learning_rate": factor * float(_value(recipe, preset, "learning_rate")),
        "save_every": steps_an_epoch,
        "keep_checkpoints": _KEPT_CHECKPOINTS,
        "validate_every": min(steps_an_epoch, int(_value(recipe, preset, "validate_every")) or 1),
    }
    if validation is None:
        # All rows of the training file are learned from.
        params |= {"validation_rows": 0, "validate_every": 0}
    if isinstance(wanted, DpoHyperparameters):
        chosen["beta"] = _value(recipe, preset, "beta") if wanted.beta == "auto" else wanted.beta
        params["beta"] = chosen["beta"]
    if isinstance(wanted, ReinforcementHyperparameters):
        params |= {"rewards": rewards, "validate_before": validation is not None}
        params |= _explore(wanted, recipe, preset, chosen, has_validation=validation is not None)
    job = JobCreate(
        name=row.tuned_name,
        recipe=recipe.id,
        preset=preset.id,
        model=model.id,
        dataset=training.dataset_id,
        validation_dataset=validation.dataset_id if validation else None,
        params=params,
        seed=row.seed,
        tags=[TAG],
        export_as=ExportAs(name=row.tuned_name),
        report_to=request.report_to,
    )
    return job, chosen


def choose_preset(recipe: Recipe, settings: Settings, model: Model) -> Preset:
    """Choose the preset that the launch would choose for one slot of this platform."""
    platform = settings.resolved_platform
    nodes = find_nodes(settings) if platform == "cuda" else None
    preset = default_preset(
        recipe,
        platform,
        1,
        device_memory_bytes=find_device_memory(platform, nodes or ()),
        parameters=model.parameter_count,
    )
    if preset is None:
        raise LookupError(f"The recipe '{recipe.id}' has no preset for this machine.")
    return preset


def choose_epochs(examples: int) -> int:
    """Return the number of epochs that ``n_epochs: auto`` means for this many examples."""
    if examples * _EPOCHS < _FEW_EXAMPLES:
        return min(_MOST_EPOCHS, -(-_FEW_EXAMPLES // max(examples, 1)))
    if examples * _EPOCHS > _MANY_EXAMPLES:
        return max(1, _MANY_EXAMPLES // examples)
    return _EPOCHS


def _choose_batch(wanted: Hyperparameters, recipe: Recipe, preset: Preset, training: Rows) -> int:
    if wanted.batch_size != "auto":
        return wanted.batch_size
    return max(1, min(int(_value(recipe, preset, "batch_size")), training.count))


def _explore(
    wanted: ReinforcementHyperparameters,
    recipe: Recipe,
    preset: Preset,
    chosen: dict[str, Any],
    *,
    has_validation: bool,
) -> dict[str, Any]:
    """Set the group size, and how often and with how many samples validation runs."""
    for name in ("eval_interval", "eval_samples"):
        if getattr(wanted, name) != "auto" and not has_validation:
            param = f"method.reinforcement.hyperparameters.{name}"
            raise FineTuningRefused(f"{param}: '{name}' needs a validation_file.", {"param": param})
    factor = 1.0 if wanted.compute_multiplier == "auto" else wanted.compute_multiplier
    group = max(2, round(factor * int(_value(recipe, preset, "group_size"))))
    chosen |= {"compute_multiplier": factor}
    params: dict[str, Any] = {"group_size": group}
    if has_validation:
        interval = _value(recipe, preset, "validate_every")
        samples = _value(recipe, preset, "validation_samples")
        params["validate_every"] = interval if wanted.eval_interval == "auto" else wanted.eval_interval
        params["validation_samples"] = samples if wanted.eval_samples == "auto" else wanted.eval_samples
        chosen |= {"eval_interval": params["validate_every"], "eval_samples": params["validation_samples"]}
    return params


def _value(recipe: Recipe, preset: Preset, name: str) -> Any:
    """Return the preset's value of a parameter, else its default."""
    if name in preset.params:
        return preset.params[name]
    parameter = recipe.parameter(name)
    if parameter is None:
        raise KeyError(f"{recipe.id} has no parameter {name}")
    return parameter.default


def find_param(field: str, method: str) -> str:
    """Return the part of the client's request that a field of ours came from."""
    places = {"dataset": "training_file", "validation_dataset": "validation_file", "model": "model"}
    if field in places:
        return places[field]
    parameters = {
        "params.batch_size": "batch_size",
        "params.learning_rate": "learning_rate_multiplier",
        "params.epochs": "n_epochs",
        "params.beta": "beta",
        "params.group_size": "compute_multiplier",
        "params.validate_every": "eval_interval",
        "params.validation_samples": "eval_samples",
    }
    if field in parameters:
        return f"method.{method}.hyperparameters.{parameters[field]}"
    return f"method.{method}.grader" if field.startswith("params.rewards") else field
