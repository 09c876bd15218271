"""What a recipe needs of the platform before it composes."""

from trellis_recipes.agents import RESOURCES
from trellis_recipes.catalogue import get_recipe, list_recipes


def resources_of(recipe: str) -> dict[str, str]:
    """Values for the knobs that name an environment or a workflow; none where there is no such recipe."""
    if recipe not in {each.id for each in list_recipes()}:
        return {}
    return {knob.name: f"{knob.type}_1" for knob in get_recipe(recipe).knobs if knob.type in RESOURCES}
