"""Loads the recipes: one YAML file each, what several of them share in ``catalogue/shared``."""

from collections.abc import Iterator
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

import yaml
from trellis_contracts.recipe import Recipe

from trellis_recipes.agents import AGENTS
from trellis_recipes.preset_titles import add_titles

CATALOGUE = Path(__file__).parent / "catalogue"


class UnknownRecipe(LookupError):
    """No recipe has the id that was asked for."""

    def __init__(self, recipe_id: str) -> None:
        super().__init__(f"Unknown recipe '{recipe_id}'. Available: {', '.join(sorted(_recipes()))}.")
        self.recipe_id = recipe_id


def list_recipes() -> list[Recipe]:
    """Return all recipes, ordered by id."""
    return [recipe for _, recipe in sorted(_recipes().items())]


def get_recipe(recipe_id: str) -> Recipe:
    """Return the recipe with this ID. Raises ``UnknownRecipe``."""
    try:
        return _recipes()[recipe_id]
    except KeyError:
        raise UnknownRecipe(recipe_id) from None


@lru_cache(maxsize=1)
def _recipes() -> dict[str, Recipe]:
    recipes = [_load(path) for path in sorted(CATALOGUE.glob("*.yaml"))]
    return {recipe.id: recipe for recipe in recipes}


def _load(path: Path) -> Recipe:
    base: dict[str, Any] = {}
    content = reduce(_merge, _layers(path), base)
    add_titles(content)
    recipe = Recipe.model_validate(content)
    if recipe.id != path.stem:
        raise ValueError(f"{path.name} holds the recipe '{recipe.id}'; file and id must agree.")
    if recipe.agent is not None and recipe.agent not in AGENTS:
        raise ValueError(f"{path.name} names the agent '{recipe.agent}'; there are {', '.join(AGENTS)}.")
    return recipe


def _layers(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the contents of a file's shared files (recursively), then its own; later ones win."""
    content = _read(path)
    shared = content.pop("shared", [])
    for name in [shared] if isinstance(shared, str) else shared:
        yield from _layers(CATALOGUE / "shared" / f"{name}.yaml")
    yield content


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def _merge(shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Merge ``own`` over ``shared``: parameters and presets by name, fixed keys by key, the rest replaced."""
    dropped = set(own.pop("drop_parameters", []))
    merged = {**shared, **own}
    parameters = _merge_named(shared.get("parameters", []), own.get("parameters", []), "name")
    merged["parameters"] = [parameter for parameter in parameters if parameter["name"] not in dropped]
    merged["presets"] = _merge_named(
        [_without(preset, dropped) for preset in shared.get("presets", [])], own.get("presets", []), "id"
    )
    merged["fixed"] = {**shared.get("fixed", {}), **own.get("fixed", {})}
    return merged


def _without(preset: dict[str, Any], dropped: set[str]) -> dict[str, Any]:
    """Return the preset without the values of parameters that the recipe does not have."""
    params = {name: value for name, value in preset.get("params", {}).items() if name not in dropped}
    return {**preset, "params": params}


def _merge_named(shared: list[dict[str, Any]], own: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    by_name = {entry[key]: dict(entry) for entry in shared}
    for entry in own:
        base = by_name.setdefault(entry[key], {})
        for field, value in entry.items():
            # A preset's params add to the shared ones; every other field replaces its own.
            is_mapping = field in ("params", "overrides") and field in base
            base[field] = {**base[field], **value} if is_mapping else value
    return list(by_name.values())
