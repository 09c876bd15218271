"""Resolves the interpolations of verl's config files.

OmegaConf does the same in about 75 ms, too slow for a preview that follows every
keystroke. verl's files use two forms only, ``${key}`` and ``${oc.select:key,default}``,
with keys relative to their own group when they begin with a dot.
"""

import re
from typing import Any

import yaml

_MISSING = object()
_INNERMOST = re.compile(r"\$\{([^${}]*)\}")


class UnknownInterpolation(ValueError):
    """The installed verl uses a form of interpolation that is not known here."""


def resolve(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the tree in which every interpolation is replaced by its value."""
    resolver = _Resolver(tree)
    return {name: resolver.value_of((name,)) for name in tree}


class _Resolver:
    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree
        self._running: set[tuple[str, ...]] = set()

    def value_of(self, path: tuple[str, ...]) -> Any:
        """Return the resolved value, or _MISSING; always a new object, so that keys do not share it."""
        return self._resolve(self._raw(path), path)

    def _raw(self, path: tuple[str, ...]) -> Any:
        node: Any = self._tree
        for position, part in enumerate(path):
            if not isinstance(node, dict) or part not in node:
                return _MISSING
            node = node[part]
            if isinstance(node, str) and "${" in node and position < len(path) - 1:
                node = self._resolve(node, path[: position + 1])
        return node

    def _resolve(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {name: self._resolve(below, (*path, name)) for name, below in value.items()}
        if isinstance(value, list):
            return [self._resolve(item, (*path, str(index))) for index, item in enumerate(value)]
        if not (isinstance(value, str) and "${" in value):
            return value
        if path in self._running:
            raise UnknownInterpolation(f"{'.'.join(path)} refers to itself.")
        self._running.add(path)
        try:
            return self._interpolate(value, path)
        finally:
            self._running.discard(path)

    def _interpolate(self, text: str, path: tuple[str, ...]) -> Any:
        while match := _INNERMOST.search(text):
            value = self._evaluate(match.group(1), path)
            if match.span() == (0, len(text)):
                return value
            text = text[: match.start()] + _as_text(value) + text[match.end() :]
        return text

    def _evaluate(self, expression: str, path: tuple[str, ...]) -> Any:
        if not expression.startswith("oc.select:"):
            if ":" in expression:
                raise UnknownInterpolation(f"'${{{expression}}}' at {'.'.join(path)}.")
            value = self._reference(expression.strip(), path)
            if value is _MISSING:
                raise UnknownInterpolation(
                    f"{'.'.join(path)} refers to '{expression}', which does not exist."
                )
            return value
        key, comma, default = expression.removeprefix("oc.select:").partition(",")
        value = self._reference(key.strip(), path)
        if value is _MISSING or value == "???":
            return yaml.safe_load(default) if comma else None
        return value

    def _reference(self, key: str, path: tuple[str, ...]) -> Any:
        if not key.startswith("."):
            return self.value_of(tuple(key.split(".")))
        ups = len(key) - len(key.lstrip("."))
        return self.value_of((*path[: len(path) - ups], *key.lstrip(".").split(".")))


def _as_text(value: Any) -> str:
    """Write as a YAML scalar, for a value that lands inside another string or a default."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
