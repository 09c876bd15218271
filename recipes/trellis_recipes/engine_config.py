"""Writes engine settings as the engine takes them: overrides, the whole configuration, and a command."""

import copy
from collections.abc import Mapping
from typing import Any

from trellis_recipes import platform_defaults
from trellis_recipes.command import replay_command
from trellis_recipes.hydra_text import NotExpressible, override, text
from trellis_recipes.issues import Issue
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import Composition, LaunchPart
from trellis_recipes.resolution import resolve
from trellis_recipes.schema import EngineSchema, Key


def write_config(
    composition: Composition,
    schema: EngineSchema,
    launch: Mapping[str, Any],
    *,
    recipe: str,
    platform: str,
    gpus: int,
) -> None:
    """Fill in overrides, resolved configuration and command; ``launch`` are settings of the launch part."""
    settings = {**composition.settings, **launch}
    lines = [
        override(dotted, value, is_new=_require_key(schema, dotted).is_new)
        for dotted, value in settings.items()
    ]
    cluster = platform_defaults.own_cluster_settings(schema.engine, platform, gpus)
    alone = [
        override(dotted, value, is_new=key.is_new)
        for dotted, value in cluster.items()
        if (key := schema.find(dotted)) is not None
    ]
    composition.engine_overrides = lines
    composition.config = build_config(schema, settings)
    composition.command = replay_command(
        schema.engine, lines + alone, composition.env, gpus=gpus, recipe=recipe
    )


def build_config(schema: EngineSchema, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's default configuration with these settings applied and interpolations resolved."""
    tree = copy.deepcopy(schema.tree)
    for dotted, value in settings.items():
        _require_key(schema, dotted)
        _place(tree, dotted, value)
    return resolve(tree)


def find_inexpressible(part: LaunchPart, parameters: Mapping[str, Value]) -> list[Issue]:
    """Find strings that the engine would not receive as they are."""
    paths = {
        "model_path": part.model_path,
        "train_path": part.train_path,
        "validation_path": part.validation_path,
        "checkpoint_dir": part.checkpoint_dir,
        "resume_from": part.resume_from,
    }
    issues = []
    for field, value in {**paths, **{f"params.{name}": value for name, value in parameters.items()}}.items():
        try:
            text(value)
        except NotExpressible as error:
            message = f"{field.removeprefix('params.')}: {error}."
            issues.append(Issue(code="invalid_value", field=field, message=message))
    return issues


def _require_key(schema: EngineSchema, dotted: str) -> Key:
    key = schema.find(dotted)
    if key is None:  # the recipe or the platform is at fault, not the person
        raise LookupError(f"The installed engine ({schema.engine}) has no setting '{dotted}'.")
    return key


def _place(tree: dict[str, Any], dotted: str, value: Any) -> None:
    *groups, name = dotted.split(".")
    for group in groups:
        below = tree.get(group)
        if not isinstance(below, dict):
            below = tree[group] = {}
        tree = below
    tree[name] = copy.deepcopy(value)
