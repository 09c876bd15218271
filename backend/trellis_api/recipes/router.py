"""``/recipes``: the catalogue that forms, CLI and documentation are made from."""

from fastapi import APIRouter
from trellis_recipes.catalogue import UnknownRecipe, get_recipe, list_recipes

from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.recipes.errors import RecipeNotFound
from trellis_api.recipes.schemas import RecipeList, RecipeName, RecipeNames, RecipeRead

router = APIRouter(prefix="/recipes", tags=["recipes"], responses={401: ERROR_RESPONSES[401]})


@router.get("", response_model_exclude={"items": {"__all__": {"knobs"}}})
def read_recipes() -> RecipeList:
    """Return all recipes, with their parameters and presets.

    The deprecated `knobs` is left out, as it is large.
    """
    return RecipeList(items=list_recipes())


@router.get("/names")
def read_recipe_names() -> RecipeNames:
    """Return ID, title and engine of all recipes, without their parameters."""
    names = (RecipeName(id=each.id, title=each.title, engine=each.engine) for each in list_recipes())
    return RecipeNames(items=list(names))


@router.get("/{recipe_id}", responses={404: ERROR_RESPONSES[404]})
def read_recipe(recipe_id: str) -> RecipeRead:
    """Return one recipe, with the JSON Schema of its parameters."""
    try:
        recipe = get_recipe(recipe_id)
    except UnknownRecipe as error:
        raise RecipeNotFound(f"Recipe '{recipe_id}' not found.") from error
    return RecipeRead.model_validate(recipe, from_attributes=True)
