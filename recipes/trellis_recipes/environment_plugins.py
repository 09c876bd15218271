"""Environment kinds, found by the entry point group ``trellis.environments``.

An entry point is named like the kind and leads to a module with ``make`` and ``call``
(``trellis_train.agents.environments.Kind``). A YAML file of the same name beside it describes the kind
(``EnvironmentKind``). The module is imported only where environments are made and tools are called, in a
process of its own; the packages above it are imported to find it. Only those who install packages beside the
platform can add kinds.

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

import yaml
from pydantic import ValidationError
from trellis_contracts import DISTRIBUTION
from trellis_contracts.environments import EnvironmentKind

GROUP = "trellis.environments"


@dataclass(frozen=True)
class Plugin:
    """A kind, the module that makes it, and whether it is one of the platform's own."""

    kind: EnvironmentKind
    module: str
    is_built_in: bool


@dataclass(frozen=True)
class Plugins:
    """Usable kinds by name, and a sentence for each entry point that cannot be used."""

    kinds: dict[str, Plugin]
    problems: list[str]


@lru_cache(maxsize=1)
def find_plugins() -> Plugins:
    """Find all installed kinds: the platform's, then others by name. A name that is taken is a problem."""
    kinds: dict[str, Plugin] = {}
    problems = []
    entries = sorted(entry_points(group=GROUP), key=lambda each: (not _is_ours(each), each.name, each.value))
    for entry in entries:
        try:
            kinds[entry.name] = _read(entry, taken=kinds)
        except _Unusable as error:
            problems.append(f"environment kind '{entry.name}' ({entry.value}): {error}")
    if not any(plugin.is_built_in for plugin in kinds.values()):
        problems.append(f"{DISTRIBUTION} was installed from an older version: run ./init.sh setup")
    return Plugins(kinds, problems)


def find_plugin_versions() -> dict[str, str]:
    """Find the versions of the installed packages that bring kinds, by the packages' names."""
    packages = [entry.dist for entry in entry_points(group=GROUP) if entry.dist is not None]
    return {package.name: package.version for package in packages}


class _Unusable(Exception):
    """An entry point that cannot be used, with the reason."""


def _is_ours(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == DISTRIBUTION


def _read(entry: EntryPoint, *, taken: Collection[str]) -> Plugin:
    if entry.name in taken:
        raise _Unusable("another kind has this name")
    try:
        spec = find_spec(entry.module)
    except Exception as error:
        raise _Unusable(f"cannot be imported: {type(error).__name__}: {error}") from error
    if spec is None or spec.origin is None:
        raise _Unusable("there is no such module")
    path = Path(spec.origin).with_suffix(".yaml")
    try:
        kind = EnvironmentKind.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise _Unusable(f"its description {path.name} is missing beside {Path(spec.origin).name}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise _Unusable(f"{path.name}: {' '.join(str(error).split())}") from error
    if kind.name != entry.name:
        raise _Unusable(f"{path.name} describes the kind '{kind.name}'")
    return Plugin(kind, entry.module, _is_ours(entry))
