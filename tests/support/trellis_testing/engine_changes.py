"""Entries of the registry of changed engines, applied to stand-ins."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from trellis_train.compat.catalogue import list_changes
from trellis_train.compat.change import Change


def find_change(target: str, group: str | None = None) -> Change:
    """The entry of a target, given by its end."""
    (entry,) = [
        each for each in list_changes(*([group] if group else [])) if f".{each.target}".endswith(f".{target}")
    ]
    return entry


def changed(target: str, original: Any, group: str | None = None) -> Any:
    """What the entry makes of ``original``."""
    replace: Callable[[Any], Any] | None = find_change(target, group).replace
    assert replace is not None
    return replace(original)


def make_module(name: str, **content: Any) -> ModuleType:
    """A module that is nowhere else."""
    module = ModuleType(name)
    vars(module).update(content)
    return module
