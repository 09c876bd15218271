"""The schema behind each recipe: verl's Hydra files, or one of TRL's config classes."""

from trellis_contracts.recipe import Engine, Recipe

from trellis_recipes.catalogue import list_recipes
from trellis_recipes.retrieval_schema import load_retrieval_schema
from trellis_recipes.schema import EngineSchema, load_schema
from trellis_recipes.trl_schema import load_trl_schema


def schema_of(recipe: Recipe) -> EngineSchema:
    """Return keys, types and defaults of the trainer of the recipe; raises ``EngineNotInstalled``."""
    return find_schema(recipe.engine, recipe.id)


def find_schema(engine: Engine, recipe_id: str) -> EngineSchema:
    """Return the schema of a recipe that may have left the catalogue since."""
    if engine is Engine.TRL:
        return load_trl_schema(recipe_id)
    if engine is Engine.RETRIEVAL:
        return load_retrieval_schema()
    return load_schema(engine)


def load_schemas() -> None:
    """Read in advance what every recipe's checks need."""
    for recipe in list_recipes():
        schema_of(recipe)
