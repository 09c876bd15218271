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
) -> Settings:
    """Return all settings but those of the launch part, in the order in which they apply."""
    return {
        **recipe.fixed,
        **plain_settings(recipe, parameters),
        **(preset.overrides if preset else {}),
        **own,
        "device": platform_defaults.device(request.platform),
        "seed": parameters["seed"],
    }
