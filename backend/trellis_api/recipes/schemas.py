"""Recipes as clients see them: the contract itself."""

from typing import Any

from pydantic import BaseModel, computed_field
from trellis_contracts.parameter_schema import describe_recipe
from trellis_contracts.recipe import Recipe, Text


class RecipeList(BaseModel):
    """The catalogue."""

    items: list[Recipe]


class RecipeRead(Recipe):
    """A recipe with the schema of its parameters."""

    @computed_field(description="JSON Schema (2020-12) of a job's `params`, with texts in both languages.")
    def params_schema(self) -> dict[str, Any]:
        return describe_recipe(self)


class RecipeName(BaseModel):
    """What lists and titles need of a recipe."""

    id: str
    title: Text
    engine: str


class RecipeNames(BaseModel):
    """The catalogue by name."""

    items: list[RecipeName]
