"""Installs the changes that a process needs, each when the module of its target is first imported."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from trellis_train.compat.catalogue import list_changes
from trellis_train.compat.change import Change, EngineMoved
from trellis_train.compat.checking import require_unmoved
from trellis_train.compat.imports import patch_after_import
from trellis_train.compat.source import find_file, split_module


@cache
def apply(group: str) -> None:
    """Install the assigned changes of ``group``, once; they take effect when their modules are imported.

    Raises ``EngineMoved``, at the latest then, where an engine is not the one that they were written for.
    """
    by_module: dict[str, list[Change]] = {}
    for entry in list_changes(group):
        is_installed = find_file(entry.target.partition(".")[0]) is not None
        if entry.replace is not None and is_installed:
            by_module.setdefault(split_module(entry.target)[0], []).append(entry)
    for name, entries in by_module.items():
        _install(name, entries)


def require_group(*groups: str) -> None:
    """Raise ``EngineMoved`` unless all entries of these groups are as they were; nothing is installed."""
    require_unmoved(list_changes(*groups))


def apply_now(group: str) -> None:
    """Check all entries of ``group``, import their modules and install the assigned ones."""
    require_unmoved(list_changes(group))
    for entry in list_changes(group):
        if entry.replace is not None:
            import_module(split_module(entry.target)[0])
    apply(group)


def _install(name: str, entries: list[Change]) -> None:
    def install(module: ModuleType) -> None:
        require_unmoved(entries)
        for entry in entries:
            replace_in(module, entry)

    patch_after_import(name, install)


def replace_in(module: ModuleType, entry: Change) -> None:
    """Put the replacement into a module that is there, whatever its source."""
    if entry.replace is None:
        raise ValueError(f"{entry.target} is not replaced by assignment")
    *owners, name = entry.target.removeprefix(f"{module.__name__}.").split(".")
    owner: Any = module
    for each in owners:
        owner = _get(owner, each, entry)
    setattr(owner, name, entry.replace(_get(owner, name, entry)))


def _get(owner: Any, name: str, entry: Change) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        raise EngineMoved(f"{EngineMoved.code}: {entry.target} is gone from what is installed") from None
