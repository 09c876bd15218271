"""JSON Schema (2020-12) of parameters: of recipes, environment kinds, rewards and data operators.

The standard keywords say which values are accepted. Forms read these annotations as well, in every property:

- ``title_texts``, ``help_texts``: title and help by language; ``title`` and ``description`` hold English
- ``unit``: of a number, such as ``tokens``
- ``group``, ``advanced``: the part of the form that the parameter belongs to, and whether it is folded away
- ``auto``: an empty value is derived from other parameters
- ``source``: the value names a thing of the platform, such as a model, or files
- ``multiline``: a longer text
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from trellis_contracts.environments import EnvironmentKind
from trellis_contracts.recipe import Parameter, Recipe, Text
from trellis_contracts.rewards import RewardKind, RewardTerm

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"int": "integer", "float": "number", "bool": "boolean"}
#: Types whose values are IDs.
_REFERENCES = ("environment", "workflow")


def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return the schema of a job's ``params``."""
    sources = {each.name: each.type for each in recipe.parameters if each.type in _REFERENCES}
    return _describe_all(recipe.parameters, required=(), sources=sources)


def describe_environment_kind(kind: EnvironmentKind) -> dict[str, Any]:
    """Return the schema of an environment's ``parameters``."""
    required = kind.sources.keys() - set(kind.optional_sources)
    return _describe_all(kind.parameters, required=required, sources=kind.sources)


def describe_reward(kind: RewardKind) -> dict[str, Any]:
    """Return the schema of a reward term's ``options``."""
    required = {each.name for each in kind.options if each.is_required}
    sources = {each.name: each.source for each in kind.options if each.source is not None}
    schema = _describe_all(kind.options, required=required, sources=sources)
    for option in kind.options:
        described = schema["properties"][option.name]
        if option.is_multiline:
            described["multiline"] = True
        if option.source == "judges":  # those that are set up on this platform
            described["examples"] = list(option.choices)
    return schema


def describe_model(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model whose fields carry ``annotate`` as their extra schema."""
    return {"$schema": DIALECT, **model.model_json_schema()}


def annotate(*, title: Text, help: Text, unit: str | None = None) -> dict[str, Any]:
    """Return the annotations that every parameter has."""
    annotations: dict[str, Any] = {
        "title": title.en,
        "description": help.en,
        "title_texts": title.model_dump(),
        "help_texts": help.model_dump(),
    }
    return annotations if unit is None else {**annotations, "unit": unit}


def _describe_all(
    parameters: Iterable[Parameter], *, required: Collection[str], sources: Mapping[str, str]
) -> dict[str, Any]:
    properties = {}
    for each in parameters:
        properties[each.name] = _describe(each, is_required=each.name in required)
        if each.name in sources:
            properties[each.name]["source"] = sources[each.name]
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name in required],
        "additionalProperties": False,
    }


def _describe(parameter: Parameter, *, is_required: bool) -> dict[str, Any]:
    values = _describe_values(parameter)
    can_be_null = not is_required and (parameter.default is None or parameter.can_be_empty)
    return {
        **({"anyOf": [values, {"type": "null"}]} if can_be_null else values),
        **({} if is_required else {"default": parameter.default}),
        **annotate(title=parameter.title, help=parameter.help, unit=parameter.unit),
        "group": parameter.group,
        **({"advanced": True} if parameter.advanced else {}),
        **({"auto": parameter.auto} if parameter.auto else {}),
    }


def _describe_values(parameter: Parameter) -> dict[str, Any]:
    """Return the keywords that say which values are accepted, null aside."""
    if parameter.type == "rewards":
        return {"type": "array", "items": RewardTerm.model_json_schema(), "minItems": 1}
    if parameter.type == "choice":
        return {"type": "string", "enum": list(parameter.choices)}
    bounds = {
        "minimum": parameter.minimum,
        "maximum": parameter.maximum,
        "exclusiveMinimum": parameter.exclusive_minimum,
    }
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"type": _TYPES.get(parameter.type, "string"), **given}
