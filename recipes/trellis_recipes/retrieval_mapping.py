"""From parameters to the settings of the retrieval engine."""

from typing import Any

from trellis_contracts.recipe import Preset, Recipe

from trellis_recipes import platform_defaults
from trellis_recipes.mapping import Settings, plain_settings
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import ComposeRequest


def settings_of(
    recipe: Recipe,
    preset: Preset | None,
    request: ComposeRequest,
    parameters: dict[str, Value],
    own: dict[str, Any],
    *,
    validation_path: str | None,
) -> Settings:
    """Return all settings, in the order in which they apply."""
    return {
        **recipe.fixed,
        **plain_settings(recipe, parameters),
        **(preset.overrides if preset else {}),
        **own,
        "model_path": request.model_path,
        "train_file": request.train_path,
        "validation_file": validation_path,
        "output_dir": request.checkpoint_dir,
        "resume_from": request.resume_from,
        "device": platform_defaults.device(request.platform),
        "seed": parameters["seed"],
    }
