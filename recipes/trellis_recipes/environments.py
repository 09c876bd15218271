"""The kinds of environments that can be made, and the check of their parameters."""

from collections.abc import Mapping
from typing import Any

from trellis_contracts.environments import EnvironmentKind

from trellis_recipes.environment_plugins import find_plugins
from trellis_recipes.issues import Issue, nearest
from trellis_recipes.recipe_parameters import check_value


def environment_kinds() -> dict[str, EnvironmentKind]:
    """Return all kinds by name, in the order of the form: the platform's own first."""
    return {name: plugin.kind for name, plugin in find_plugins().kinds.items()}


def check_parameters(
    name: str, given: Mapping[str, Any], *, field: str = "parameters"
) -> tuple[dict[str, Any], list[Issue]]:
    """Return all parameters of the kind with their defaults filled in, and what is wrong."""
    kind = environment_kinds().get(name)
    if kind is None:
        suggestion = nearest(name, environment_kinds())
        message = (
            f"Unknown environment kind '{name[:80]}'. Choose from {', '.join(sorted(environment_kinds()))}."
        )
        return {}, [
            Issue(code="unknown_environment_kind", field="kind", message=message, suggestion=suggestion)
        ]
    known = {parameter.name: parameter for parameter in kind.parameters}
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in kind.parameters}
    issues: list[Issue] = []
    for parameter_name, value in given.items():
        place = f"{field}.{parameter_name}"
        parameter = known.get(parameter_name)
        if parameter is None:
            suggestion = nearest(parameter_name, known)
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
            message = f"The kind '{name}' has no parameter '{parameter_name[:80]}'.{hint}"
            issues.append(
                Issue(code="unknown_parameter", field=place, message=message, suggestion=suggestion)
            )
            continue
        checked, problem = check_value(parameter, value)
        if problem is None:
            values[parameter_name] = checked
        else:
            issues.append(Issue(code="invalid_value", field=place, message=problem))
    return values, issues or _check_groups(kind, values, field)


def _check_groups(kind: EnvironmentKind, values: Mapping[str, Any], field: str) -> list[Issue]:
    """Check that exactly one is given of sources that are alternatives to each other."""
    issues = []
    for group in kind.one_of:
        given, names = [name for name in group if values.get(name)], " or ".join(group)
        if not given:
            message = f"The kind '{kind.name}' needs {names}."
            issues.append(Issue(code="source_missing", field=f"{field}.{group[0]}", message=message))
        elif len(given) > 1:
            message = f"The kind '{kind.name}' takes either {names}, not both."
            issues.append(Issue(code="sources_conflict", field=f"{field}.{given[-1]}", message=message))
    return issues
