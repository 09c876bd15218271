"""Keeps the old name of a renamed field for one release: read with a warning, repeated in answers.

A model names what was renamed in ``old_names`` and repeats a field in its answers by a property::

    class Recipe(Renamed):
        old_names: ClassVar = {"trains_on": "row_format"}
        row_format: DataFormat

        @deprecated_field("row_format")
        def trains_on(self) -> DataFormat:
            return self.row_format
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, GetJsonSchemaHandler, computed_field, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


def use_new_names(given: Mapping[str, Any], old_names: Mapping[str, str], *, of: str) -> dict[str, Any]:
    """Return ``given`` with new names for old ones; a ``DeprecationWarning`` names each that stands alone.

    Answers carry both names, so both may be given with the same value; other values raise ``ValueError``.
    """
    renamed = dict(given)
    for old, new in old_names.items():
        if old not in renamed:
            continue
        value = renamed.pop(old)
        if new not in renamed:
            warn_of(old, new, of=of)
            renamed[new] = value
        elif renamed[new] != value:
            raise ValueError(f"'{old}' was renamed to '{new}', and both are given with different values")
    return renamed


def warn_of(old: str, new: str, *, of: str) -> None:
    """Issue the ``DeprecationWarning`` of a name that was renamed."""
    warnings.warn(f"'{old}' of {of} was renamed to '{new}'", DeprecationWarning, stacklevel=3)


def deprecated_field(new: str) -> Callable[[Callable[[Any], Any]], Any]:
    """Repeat a field in answers under its old name, marked as deprecated in the schema."""

    def mark(read: Callable[[Any], Any]) -> Any:
        # Not by `deprecated=`: pydantic would warn with every answer.
        marked = computed_field(description=f"Renamed to {new}.", json_schema_extra={"deprecated": True})
        return marked(property(read))

    return mark


class Renamed(BaseModel):
    """Base of models with renamed fields: old names are accepted as input, and optional in answers."""

    #: Old name → new name.
    old_names: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _read_old_names(cls, given: Any) -> Any:
        return use_new_names(given, cls.old_names, of=cls.__name__) if isinstance(given, Mapping) else given

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        described = handler.resolve_ref_schema(schema)
        if "required" in described:
            described["required"] = [name for name in described["required"] if name not in cls.old_names]
        return schema
