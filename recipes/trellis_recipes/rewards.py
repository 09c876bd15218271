"""The rewards that a mixture may be made of, and the check of a mixture's names and options."""

import json
import math
import re
import string
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from pydantic import TypeAdapter, ValidationError
from trellis_contracts.rewards import RewardKind, RewardOption, RewardTerm

from trellis_recipes.issues import Issue, nearest
from trellis_recipes.recipe_parameters import check_value

CATALOGUE_FILE = Path(__file__).parent / "reward_kinds.yaml"
#: What a judge's template may refer to.
TEMPLATE_FIELDS = frozenset({"prompt", "response", "answer", "lowest", "highest"})
MAX_TERMS = 8
FIELD = "params.rewards"


@lru_cache(maxsize=1)
def reward_kinds() -> dict[str, RewardKind]:
    """Return all kinds of rewards by name, in the order of the form."""
    entries = yaml.safe_load(CATALOGUE_FILE.read_text(encoding="utf-8"))
    kinds = TypeAdapter(list[RewardKind]).validate_python(entries)
    return {kind.name: kind for kind in kinds}


def check_mixture(rewards: object, *, field: str = FIELD) -> tuple[list[RewardTerm], list[Issue]]:
    """Fill in the terms' default options and list the issues; terms with errors are left out.

    ``rewards`` is what a person gave: a list of ``{"name", "weight", "options"}``.
    """
    if not isinstance(rewards, list) or not rewards:
        message = "A reward mixture must contain at least one reward."
        return [], [Issue(code="invalid_rewards", field=field, message=message)]
    if len(rewards) > MAX_TERMS:
        message = f"A reward mixture can have at most {MAX_TERMS} rewards, not {len(rewards)}."
        return [], [Issue(code="invalid_rewards", field=field, message=message)]
    terms: list[RewardTerm] = []
    issues: list[Issue] = []
    for index, given in enumerate(rewards):
        term, found = _check_term(given, f"{field}.{index}")
        issues.extend(found)
        if term is not None and not found:
            terms.append(term)
    names = [term.name for term in terms]
    issues.extend(
        Issue(code="reward_twice", field=field, message=f"Reward '{name}' is listed twice.")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    )
    if terms and not issues and not any(term.weight for term in terms):
        message = "All weights are 0, so no response would get a reward."
        issues.append(Issue(code="weightless_rewards", field=field, message=message))
    return terms, issues


def check_pair_reward(rewards: object) -> list[Issue]:
    """Check the reward that ranks sampled responses: it must be ``tool_use`` alone."""
    terms, issues = check_mixture(rewards)
    if not issues and [term.name for term in terms] != ["tool_use"]:
        message = "Sampled pairs are ranked by the reward 'tool_use' alone; remove the others."
        issues = [Issue(code="invalid_rewards", field=FIELD, message=message)]
    return issues


def _check_term(given: object, field: str) -> tuple[RewardTerm | None, list[Issue]]:
    try:
        term = RewardTerm.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([field, *(str(part) for part in first["loc"])])
        return None, [Issue(code="invalid_rewards", field=place, message=first["msg"])]
    if not math.isfinite(term.weight):
        message = f"The weight of '{term.name}' must be a finite number."
        return None, [Issue(code="invalid_weight", field=f"{field}.weight", message=message)]
    kind = reward_kinds().get(term.name)
    if kind is None:
        suggestion = nearest(term.name, reward_kinds())
        hint = f" Did you mean '{suggestion}'?" if suggestion else ""
        message = f"Unknown reward '{term.name}'.{hint} Available: {', '.join(reward_kinds())}."
        return None, [
            Issue(code="unknown_reward", field=f"{field}.name", message=message, suggestion=suggestion)
        ]
    return _check_options(kind, term, f"{field}.options")


def _check_options(kind: RewardKind, term: RewardTerm, field: str) -> tuple[RewardTerm, list[Issue]]:
    """Return the term with all options, defaults filled in, and the issues of the given options."""
    known = {option.name: option for option in kind.options}
    options: dict[str, Any] = {option.name: option.default for option in kind.options}
    issues: list[Issue] = []
    for name, value in term.options.items():
        place = f"{field}.{name}"
        option = known.get(name)
        if option is None:
            issues.append(_unknown_option(kind, name, place))
            continue
        checked, problem = check_value(option, value)
        if problem is None:
            options[name] = checked
        else:
            issues.append(Issue(code="invalid_value", field=place, message=problem))
    issues.extend(_find_missing(kind, options, field))
    if not issues:
        problem_at = _check_meaning(kind.name, options)
        issues.extend(
            Issue(code="invalid_value", field=f"{field}.{name}", message=message)
            for name, message in problem_at
        )
    return term.model_copy(update={"options": options}), issues


def _unknown_option(kind: RewardKind, name: str, place: str) -> Issue:
    suggestion = nearest(name, (option.name for option in kind.options))
    hint = f" Did you mean '{suggestion}'?" if suggestion else ""
    message = f"Reward '{kind.name}' has no option '{name}'.{hint}"
    return Issue(code="unknown_option", field=place, message=message, suggestion=suggestion)


def _find_missing(kind: RewardKind, options: dict[str, Any], field: str) -> Iterator[Issue]:
    def is_missing(option: RewardOption) -> bool:
        value = options[option.name]
        return option.is_required and (value is None or (isinstance(value, str) and not value.strip()))

    for option in filter(is_missing, kind.options):
        message = f"Reward '{kind.name}' requires the option '{option.name}'."
        yield Issue(code="option_missing", field=f"{field}.{option.name}", message=message)


def _check_meaning(name: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (option, problem) for faults that types and ranges do not cover."""
    if name == "regex":
        problem = find_pattern_problem(options["pattern"])
        if problem:
            yield "pattern", f"Invalid pattern: {problem}."
    elif name == "json_schema":
        problem = find_schema_problem(options["schema"])
        if problem:
            yield "schema", problem
    elif name == "judge":
        problem = find_template_problem(options["template"])
        if problem:
            yield "template", problem
        if options["lowest"] >= options["highest"]:
            yield "highest", "The highest grade must be above the lowest."


def find_pattern_problem(pattern: str) -> str | None:
    """Return the error of a regular expression, including too deep nesting or too large numbers, or None."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return None


def find_schema_problem(text: str) -> str | None:
    """Return the problem with the text of a JSON schema, or None."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"The schema is not JSON: {error}."
    if not isinstance(schema, dict):
        return "A JSON schema is an object."
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"Invalid schema: {error.message}."
    except (RecursionError, OverflowError) as error:  # of its patterns, too
        return f"Invalid schema: {error}."
    return None


def find_template_problem(template: str) -> str | None:
    """Return the problem with a judge's prompt template, or None."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        return f"The template is not valid ({error}); write a brace as {{{{ or }}}}."
    unknown = [name for name in names if name not in TEMPLATE_FIELDS]
    if unknown:
        return (
            f"The template refers to '{unknown[0]}'; there are {', '.join(sorted(TEMPLATE_FIELDS))}. "
            "Write a brace as {{ or }}."
        )
    if "response" not in names:
        return "The template must contain {response}."
    return None
