"""Checks the values that a person gave to a recipe's parameters, and fills in preset and default."""

import math
from collections.abc import Mapping
from typing import Any

from trellis_contracts.recipe import Parameter, Preset, Recipe

from trellis_recipes.catalogue import list_recipes
from trellis_recipes.issues import Issue, nearest
from trellis_recipes.reward_terms import parse_terms

#: QLoRA, in the recipes whose trainer can hold the base model in 4 bits.
QUANTIZE_PARAMETER = "quantize_base"
Value = int | float | bool | str | list[dict[str, Any]] | None


def resolve_parameters(
    recipe: Recipe, preset: Preset | None, params: Mapping[str, Any]
) -> tuple[dict[str, Value], list[Issue]]:
    """Resolve every parameter (given, else the preset's, else the default) and list the issues found.

    A value that does not pass leaves its parameter at preset or default, so that the
    rest of the request can still be checked.
    """
    values: dict[str, Value] = {parameter.name: parameter.default for parameter in recipe.parameters}
    issues: list[Issue] = []
    for source, origin in ((preset.params if preset else {}, "preset"), (params, "params")):
        for name, given in source.items():
            parameter = recipe.parameter(name)
            if parameter is None:
                explain = _no_quantisation if name == QUANTIZE_PARAMETER and given is True else _unknown
                issues.append(explain(recipe, origin, name))
                continue
            value, problem = check_value(parameter, given)
            if problem is None:
                values[name] = value
            else:
                issues.append(Issue(code="invalid_value", field=f"{origin}.{name}", message=problem))
    return values, issues


def check_value(parameter: Parameter, given: object) -> tuple[Value, str | None]:
    """Return the value in the parameter's own type, and a sentence about the problem (None if none)."""
    if given is None:
        if parameter.default is None or parameter.can_be_empty:
            return None, None
        return None, f"'{parameter.name}' must be of type {parameter.type}."
    if parameter.type == "rewards":
        terms, problem = parse_terms(given)
        return terms, None if problem is None else f"'{parameter.name}': {problem}."
    value = _coerce(parameter, given)
    if value is None:
        wanted = (
            f"one of {', '.join(parameter.choices)}"
            if parameter.type == "choice"
            else f"of type {parameter.type}"
        )
        return None, f"'{parameter.name}' must be {wanted}, not {given!r}."
    return value, _range_problem(parameter, value)


def _coerce(parameter: Parameter, given: object) -> Value:
    """Convert the value to the parameter's type; None for a wrong type. Strings are never parsed."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if parameter.type == "bool":
        return given if isinstance(given, bool) else None
    if parameter.type in ("str", "environment", "workflow"):
        return given if isinstance(given, str) else None
    if parameter.type == "choice":
        return given if isinstance(given, str) and given in parameter.choices else None
    if not is_number:
        return None
    return _as_float(given) if parameter.type == "float" else _as_int(given)


def _as_float(given: object) -> float | None:
    try:
        number = float(given)  # type: ignore[arg-type]
    except OverflowError:  # an integer beyond the largest float
        return None
    return number if math.isfinite(number) else None


def _as_int(given: object) -> int | None:
    """Accept integers, and floats without a fraction: JSON from a browser does not tell them apart."""
    if isinstance(given, int):
        return given
    return int(given) if isinstance(given, float) and given.is_integer() else None


def _range_problem(parameter: Parameter, value: Value) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    unit = f" {parameter.unit}" if parameter.unit else ""
    if parameter.minimum is not None and value < parameter.minimum:
        return f"'{parameter.name}' must be at least {parameter.minimum:g}{unit}, not {value}."
    if parameter.exclusive_minimum is not None and value <= parameter.exclusive_minimum:
        return f"'{parameter.name}' must be more than {parameter.exclusive_minimum:g}{unit}, not {value}."
    if parameter.maximum is not None and value > parameter.maximum:
        return f"'{parameter.name}' must be at most {parameter.maximum:g}{unit}, not {value}."
    return None


def _no_quantisation(recipe: Recipe, origin: str, name: str) -> Issue:
    able = [other.id for other in list_recipes() if other.parameter(name) is not None]
    where = f"; these recipes can: {', '.join(able)}" if able else ""
    return Issue(
        code="qlora_unsupported",
        field=f"{origin}.{name}",
        message=f"The trainer of '{recipe.id}' cannot hold the base model in 4 bits (QLoRA){where}. "
        "LoRA alone (lora_rank) works here.",
    )


def _unknown(recipe: Recipe, origin: str, name: str) -> Issue:
    suggestion = nearest(name, (parameter.name for parameter in recipe.parameters))
    hint = f" Did you mean '{suggestion}'?" if suggestion else ""
    return Issue(
        code="unknown_parameter",
        field=f"{origin}.{name}",
        message=f"Recipe '{recipe.id}' has no parameter '{name}'.{hint}",
        suggestion=suggestion,
    )
