"""Reads a mixture of rewards as a person gave it: terms with a name, a weight and options."""

from typing import Any

from pydantic import TypeAdapter, ValidationError
from trellis_contracts.rewards import RewardTerm

_TERMS = TypeAdapter(list[RewardTerm])


def parse_terms(given: object) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Return the terms as plain data, or a sentence that says what is wrong with them.

    Only their shape is checked here. Which rewards there are and what options each
    takes is the matter of the catalogue of rewards.
    """
    try:
        terms = _TERMS.validate_python(given, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return None, f"{place + ': ' if place else ''}{first['msg']}"
    if not terms:
        return None, "a reward mixture needs at least one reward"
    names = [term.name for term in terms]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        return None, f"'{twice[0]}' is listed twice"
    return [term.model_dump() for term in terms], None
