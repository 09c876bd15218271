"""What can go wrong with recipes."""

from trellis_api.core.errors import NotFound


class RecipeNotFound(NotFound):
    """The catalogue has no such recipe."""

    code = "recipe_not_found"
