"""Reads settings of a composed configuration that a person may have given any value."""

import math
from collections.abc import Iterable
from typing import Any

Tree = dict[str, Any]

SEQUENCE_PARALLEL = "ulysses_sequence_parallel_size"


class IncompleteConfiguration(ValueError):
    """The configuration lacks a setting that memory depends on, or holds something else there."""


def require_groups(config: Tree, paths: Iterable[str]) -> None:
    """Raise where one of the dotted paths leads to no group of settings."""
    for path in paths:
        tree: Any = config
        for name in path.split("."):
            tree = tree.get(name) if isinstance(tree, dict) else None
        if not isinstance(tree, dict):
            raise IncompleteConfiguration(f"{path} is no group of settings")


def require_settings(config: Tree, paths: Iterable[str]) -> None:
    """Raise where one of the dotted paths leads to no setting, not even to null; their groups are there."""
    for path in paths:
        *groups, name = path.split(".")
        tree: Any = config
        for each in groups:
            tree = tree[each]
        if name not in tree:
            raise IncompleteConfiguration(f"{path} is missing")


def group(tree: Tree, name: str) -> Tree:
    """Return a group of settings, or an empty dictionary if it is missing."""
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def number(tree: Tree, name: str) -> float:
    """Return a required finite number. Raises ``IncompleteConfiguration`` for anything else."""
    value = tree.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise IncompleteConfiguration(f"{name} is {value!r}, which is no number")
    return value


def positive(value: Any, fallback: int) -> int:
    """Return the value if it is a positive integer, else the fallback."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else fallback


def sequence_parallel(part: Tree, engine: Tree) -> int:
    """Return how many GPUs share a sequence: the part's own (deprecated) key counts if it is above 1."""
    own = positive(part.get(SEQUENCE_PARALLEL), 1)
    return own if own > 1 else positive(engine.get(SEQUENCE_PARALLEL), 1)
