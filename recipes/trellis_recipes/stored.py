"""What a job runs with as it was composed at its submission, in a form that outlives upgrades.

It holds the settings that the platform decides, not the engine's whole configuration: the rest are the
defaults of the engine that is installed at the launch, which runs them whatever stands here.
"""

import hashlib
import importlib.metadata
from typing import Any

from trellis_contracts import DISTRIBUTION
from trellis_contracts.agents import AgentTask
from trellis_contracts.recipe import DataFormat, Engine, Recipe, Strict

from trellis_recipes.agents import make_agent_task
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.checks.nodes import check_nodes
from trellis_recipes.engine_config import find_inexpressible, write_config
from trellis_recipes.issues import Issue
from trellis_recipes.launch_part import launch_settings
from trellis_recipes.request import ComposeRequest, Composition, LaunchPart
from trellis_recipes.schemas import find_schema

#: Whose settings an engine's are.
_PACKAGES = {
    Engine.VERL_PPO: ("verl",),
    Engine.VERL_SFT: ("verl",),
    Engine.TRL: ("trl", "transformers"),
}
#: What people read of a recipe: a job runs the same whatever it says.
_TEXTS: dict[str, Any] = {
    "title": True,
    "description": True,
    "paper": True,
    "parameters": {"__all__": {"title", "help"}},
    "presets": {"__all__": {"title"}},
}


class ComposedWith(Strict):
    """What a composition was made with."""

    #: SHA-256 of the recipe with all its presets, without titles and other texts.
    recipe: str
    #: Versions of the platform and of the engine's packages, by their names.
    packages: dict[str, str]


class StoredComposition(Strict):
    """A composition without errors, and without its launch part.

    Jobs wait with it while the platform is upgraded: new fields need defaults.
    """

    recipe: str
    engine: Engine
    platform: str
    gpus: int
    preset: str | None
    params: dict[str, Any]
    derived: list[str]
    #: In the order in which they apply.
    settings: dict[str, Any]
    env: dict[str, str]
    row_format: DataFormat
    #: Without the paths, keys and models that its launch adds.
    agent: AgentTask | None = None
    composed_with: ComposedWith


def make_stored(composition: Composition, request: ComposeRequest) -> StoredComposition:
    """Keep what was decided for a request; the composition has no errors."""
    recipe = get_recipe(request.recipe)
    return StoredComposition(
        recipe=recipe.id,
        engine=composition.engine,
        platform=request.platform,
        gpus=request.gpus,
        preset=composition.preset,
        params=composition.params,
        derived=composition.derived,
        settings=composition.settings,
        env=composition.env,
        row_format=recipe.row_format,
        agent=make_agent_task(recipe, composition.params),
        composed_with=ComposedWith(recipe=hash_recipe(recipe), packages=find_versions(recipe.engine)),
    )


def complete(stored: StoredComposition, part: LaunchPart) -> Composition:
    """Add the launch part; what stands in the way of a launch here is in ``errors``."""
    composition = Composition(
        engine=stored.engine,
        preset=stored.preset,
        params=stored.params,
        derived=stored.derived,
        settings=stored.settings,
        env=stored.env,
        errors=find_inexpressible(part, stored.params),
    )
    if problem := check_nodes(stored.engine, stored.gpus, part.node_gpus):
        composition.errors.append(problem)
    schema = find_schema(stored.engine, stored.recipe)
    composition.errors += _find_dropped(stored, [key for key in stored.settings if schema.find(key) is None])
    if not composition.errors:
        launch = launch_settings(stored.engine, part, gpus=stored.gpus, parameters=stored.params)
        write_config(
            composition, schema, launch, recipe=stored.recipe, platform=stored.platform, gpus=stored.gpus
        )
    return composition


def hash_recipe(recipe: Recipe) -> str:
    """Return the SHA-256 of a recipe as it is loaded, with what it shares with others, but without texts."""
    content = recipe.model_dump_json(exclude=_TEXTS | dict.fromkeys(Recipe.old_names, True))
    return hashlib.sha256(content.encode()).hexdigest()


def find_versions(engine: Engine) -> dict[str, str]:
    """Find the versions of the platform and of an engine's packages, as far as they are installed here."""
    versions = {}
    for package in (DISTRIBUTION, *_PACKAGES.get(engine, ())):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # unpacked beside the platform, without its metadata
            continue
    return versions


def _find_dropped(stored: StoredComposition, keys: list[str]) -> list[Issue]:
    """Say which settings the engine had when the job was submitted, and the installed one has not."""
    then = ", ".join(f"{name} {version}" for name, version in stored.composed_with.packages.items())
    return [
        Issue(
            code="unknown_engine_key",
            field=f"overrides.{key}",
            message=f"The installed {stored.engine} engine has no setting '{key}'; the job was configured "
            f"with {then}. Clone it to configure it for this version.",
        )
        for key in keys
    ]
