"""The parameters that a job ran with: those that it was given, and the rest by its preset and recipe."""

from trellis_recipes.catalogue import UnknownRecipe, get_recipe
from trellis_recipes.recipe_parameters import Value, resolve_parameters

from trellis_api.jobs.models import Job


def resolve_params(job: Job) -> dict[str, Value] | None:
    """Resolve a run's parameters, with its preset's and recipe's values; None if the recipe is unknown."""
    try:
        recipe = get_recipe(job.recipe)
    except UnknownRecipe:
        return None
    preset = next((each for each in recipe.presets if each.id == job.preset), None)
    return resolve_parameters(recipe, preset, job.params)[0]
