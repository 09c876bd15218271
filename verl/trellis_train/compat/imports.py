"""Calling a patch right after the module that it patches is first imported.

The plugin is loaded in every process; importing the patched modules eagerly would
cost each of them seconds of start-up.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Patch = Callable[[ModuleType], None]


class _PatchingLoader(Loader):
    """Runs a module's own loader, then the patch."""

    def __init__(self, loader: Loader, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Restored first: inspect.getsource and importlib.resources ask the loader.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._patch(module)


class _AfterImport(MetaPathFinder):
    """Finds one module, once, and wraps its loader."""

    def __init__(self, name: str, patch: Patch) -> None:
        self._name = name
        self._patch = patch

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _PatchingLoader(spec.loader, self._patch)
        return spec


def patch_after_import(name: str, patch: Patch) -> None:
    """Call ``patch(module)`` when module ``name`` is first imported, or now if it already was."""
    module = sys.modules.get(name)
    if module is not None:
        patch(module)
    else:
        sys.meta_path.insert(0, _AfterImport(name, patch))
