"""Reads the fields of the engines' config dataclasses from their source, without importing the engines.

verl's YAML files leave out many keys that the dataclasses behind them accept
(``rollout.enable_sleep_mode``), and TRL's settings are dataclasses only. Importing
either would pull in torch, so the source is parsed.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trellis_recipes.syntax import parse_python


@dataclass(frozen=True)
class FieldType:
    """What a field accepts: names of scalar types, and the config class of a nested field."""

    scalars: frozenset[str]
    nested: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether any key may stand below the field (a plain dict)."""
        return bool(self.scalars & {"dict", "any"})


ANY = FieldType(frozenset({"any"}))
_SCALARS = {"int", "float", "str", "bool", "dict", "list"}
_ALIASES = {
    **{"tuple": "list", "Dict": "dict", "List": "list", "Mapping": "dict", "Sequence": "list"},
    # Enumerations of transformers, which are given by their values.
    **dict.fromkeys(("SchedulerType", "OptimizerNames", "IntervalStrategy", "SaveStrategy"), "str"),
    **dict.fromkeys(("HubStrategy", "DebugOption"), "str"),
}


class ConfigClasses:
    """The config dataclasses in some files, by class name; on equal names the first wins."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._classes: dict[str, ast.ClassDef] = {}
        for path in files:
            for node in parse_python(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    self._classes.setdefault(node.name, node)

    @cache  # noqa: B019 - one instance lives as long as the process
    def fields(self, class_name: str) -> dict[str, FieldType]:
        """Return the fields of the class and of its bases that a config may set."""
        node = self._classes.get(class_name)
        if node is None:
            return {}
        fields: dict[str, FieldType] = {}
        for base in node.bases:
            fields.update(self.fields(_last_name(base)))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                if not name.startswith("_"):
                    fields[name] = self._type(statement.annotation)
        return fields

    def defaults(self, class_name: str) -> dict[str, Any]:
        """Return the default of each field where it is written as a literal; None elsewhere."""
        node = self._classes.get(class_name)
        if node is None:
            return {}
        defaults: dict[str, Any] = {}
        for base in node.bases:
            defaults.update(self.defaults(_last_name(base)))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                defaults[statement.target.id] = _default_of(statement.value, node)
        return defaults

    def _type(self, annotation: ast.expr) -> FieldType:
        if isinstance(annotation, ast.BinOp):  # X | Y
            return _union(self._type(annotation.left), self._type(annotation.right))
        if isinstance(annotation, ast.Constant):
            if annotation.value is None:
                return FieldType(frozenset({"none"}))
            if isinstance(annotation.value, str):  # a forward reference
                return self._type(ast.parse(annotation.value, mode="eval").body)
        if isinstance(annotation, ast.Subscript):
            return self._generic(annotation)
        name = _last_name(annotation)
        name = _ALIASES.get(name, name)
        if name in _SCALARS:
            return FieldType(frozenset({name}))
        if name in self._classes:
            return FieldType(frozenset(), nested=name)
        return ANY

    def _generic(self, annotation: ast.Subscript) -> FieldType:
        outer = _last_name(annotation.value)
        if outer == "Optional":
            return _union(self._type(annotation.slice), FieldType(frozenset({"none"})))
        if outer == "Union" and isinstance(annotation.slice, ast.Tuple):
            parts = [self._type(part) for part in annotation.slice.elts]
            union = parts[0]
            for part in parts[1:]:
                union = _union(union, part)
            return union
        if outer == "Literal":
            return FieldType(frozenset({"str", "int", "bool"}))
        outer = _ALIASES.get(outer, outer)
        return FieldType(frozenset({outer})) if outer in _SCALARS else ANY


def _union(left: FieldType, right: FieldType) -> FieldType:
    return FieldType(left.scalars | right.scalars, left.nested or right.nested)


def _default_of(value: ast.expr | None, owner: ast.ClassDef) -> Any:
    if isinstance(value, ast.Call):  # field(default=...)
        arguments = {keyword.arg: keyword.value for keyword in value.keywords}
        factory = arguments.get("default_factory")
        if isinstance(factory, ast.Lambda):
            return _literal(factory.body)
        if isinstance(factory, ast.Name):
            return {"list": [], "dict": {}}.get(factory.id)
        value = arguments.get("default")
    if isinstance(value, ast.Name):
        # transformers chooses some defaults by torch's version; the last choice is that of a recent one.
        chosen = [
            node.value
            for node in ast.walk(owner)
            if isinstance(node, ast.Assign) and [_last_name(each) for each in node.targets] == [value.id]
        ]
        value = chosen[-1] if chosen else None
    return None if value is None else _literal(value)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
