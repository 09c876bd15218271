"""Recipes as clients see them: the contract itself."""

from pydantic import BaseModel
from trellis_contracts.recipe import Recipe, Text


class RecipeList(BaseModel):
    """The catalogue."""

    items: list[Recipe]


class RecipeName(BaseModel):
    """What lists and titles need of a recipe."""

    id: str
    title: Text
    engine: str


class RecipeNames(BaseModel):
    """The catalogue by name."""

    items: list[RecipeName]
