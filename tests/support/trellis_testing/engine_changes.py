"""Entries of the registry of changed engines, applied to stand-ins."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from trellis_train.compat.catalogue import list_changes
from trellis_train.compat.change import Change


def find_change(target: str, group: str | None = None) -> Change:
    """Return the entry of a target, given by the end of its name."""
    (entry,) = [
        each for each in list_changes(*([group] if group else [])) if f".{each.target}".endswith(f".{target}")
    ]
    return entry


def changed(target: str, original: Any, group: str | None = None) -> Any:
    """Apply the entry's replacement to ``original``."""
    replace: Callable[[Any], Any] | None = find_change(target, group).replace
    assert replace is not None
    return replace(original)


def make_module(name: str, **content: Any) -> ModuleType:
    """Create a module that does not exist otherwise."""
    module = ModuleType(name)
    vars(module).update(content)
    return module
