"""Recipes as clients see them: the contract itself."""

from pydantic import BaseModel
from trellis_contracts.recipe import Recipe


class RecipeList(BaseModel):
    """The catalogue."""

    items: list[Recipe]
