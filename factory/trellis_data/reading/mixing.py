"""Columns whose values are of several plain kinds, such as numbers and texts, as texts."""

from collections import defaultdict
from typing import Any, Literal

import pyarrow as pa

#: What becomes of such a column: the first kind stays and other rows go to quarantine, or it becomes text.
Mixed = Literal["quarantine", "text"]
#: Names of objects' members and None for a list's items; nothing below what is a text.
Texts = dict[str | None, "Texts"]
_Path = tuple[str | None, ...]
_PLAIN = {"boolean", "number", "text"}
#: Whole numbers up to here are the same as integers and as decimal numbers.
_EXACT = 2**53


class Kinds:
    """The kinds of values that stand at each place."""

    def __init__(self) -> None:
        self._found: defaultdict[_Path, set[str]] = defaultdict(set)

    def note(self, value: Any, path: _Path = ()) -> None:
        """Look at a value."""
        if value is None:
            return
        if isinstance(value, dict):
            for name, item in value.items():
                self.note(item, (*path, name))
        elif isinstance(value, list):
            for item in value:
                self.note(item, (*path, None))
        self._found[path].add(_kind_of(value))

    def note_type(self, kind: pa.DataType, path: _Path = ()) -> None:
        """Look at the type of values that were seen before."""
        if pa.types.is_struct(kind):
            for field in kind:
                self.note_type(field.type, (*path, field.name))
        elif pa.types.is_list(kind):
            self.note_type(kind.value_type, (*path, None))
        if name := _kind_of_type(kind):
            self._found[path].add(name)

    def add_mixed(self, texts: Texts) -> bool:
        """Add the places to ``texts`` where several plain kinds stand; whether there are new ones."""
        is_new = False
        for path, kinds in self._found.items():
            if len(kinds) > 1 and kinds <= _PLAIN:
                node = texts
                for name in path:
                    is_new |= name not in node
                    node = node.setdefault(name, {})
        return is_new


def as_texts(value: Any, texts: Texts) -> Any:
    """Return the value with texts at these places."""
    if isinstance(value, dict):
        return {name: as_texts(item, texts[name]) if name in texts else item for name, item in value.items()}
    if isinstance(value, list):
        return [as_texts(item, texts[None]) for item in value] if None in texts else value
    return value if texts else _written(value)


def as_text_types(kind: pa.DataType, texts: Texts) -> pa.DataType:
    """Return the type with texts at these places."""
    if pa.types.is_struct(kind):
        types = {
            field.name: as_text_types(field.type, texts[field.name]) for field in kind if field.name in texts
        }
        return pa.struct([field.with_type(types.get(field.name, field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(as_text_types(kind.value_type, texts[None])) if None in texts else kind
    return kind if texts or _kind_of_type(kind) not in _PLAIN else pa.string()


def numbers_as_texts(array: pa.Array) -> pa.Array:
    """Convert decimals to texts as ``as_texts`` does, for columns where integers became decimals."""
    return pa.array([_written(value) for value in array.to_pylist()], pa.string())


def _written(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    return str(value) if isinstance(value, int | float) else value


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"


def _kind_of_type(kind: pa.DataType) -> str | None:
    """Return the kind of a type's values; None if the type is null."""
    if pa.types.is_null(kind):
        return None
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_struct(kind):
        return "object"
    if pa.types.is_list(kind):
        return "list"
    return "text" if pa.types.is_string(kind) else "other"
