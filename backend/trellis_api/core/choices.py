"""Free-form objects of a request: names and values that a recipe or an engine gives a meaning."""

from typing import Annotated, Any

from pydantic import AfterValidator

from trellis_api.core.redaction import has_secret
from trellis_api.core.texts import storable_tree

#: No recipe has as many parameters and no engine as deep settings; each of these is looked at and compared.
MAX_CHOICES, MAX_CHOICE_CHARACTERS, MAX_CHOICE_DEPTH = 500, 300, 32


def _check_extent(choices: dict[str, Any]) -> None:
    """Refuse what no recipe asks for; ``above`` are the characters of a dotted name up to there."""
    count = 0
    todo: list[tuple[int, int, Any]] = [(0, 1, choices)]
    while todo:
        above, depth, value = todo.pop()
        if depth > MAX_CHOICE_DEPTH:
            raise ValueError(f"is nested more than {MAX_CHOICE_DEPTH} levels deep")
        if isinstance(value, dict):
            count += len(value)
            if count > MAX_CHOICES:
                raise ValueError(f"has more than {MAX_CHOICES} names")
            if any(above + len(str(name)) > MAX_CHOICE_CHARACTERS for name in value):
                raise ValueError(f"has a name of more than {MAX_CHOICE_CHARACTERS} characters")
            below = [(above + len(str(name)) + 1, each) for name, each in value.items()]
        else:
            below = [(above, each) for each in value]
        todo += [(length, depth + 1, each) for length, each in below if isinstance(each, dict | list)]


def check_choices(choices: dict[str, Any]) -> dict[str, Any]:
    """Refuse what can't be stored and what must not be: everybody who sees the job sees its choices."""
    _check_extent(choices)
    if storable_tree(choices) != choices:
        raise ValueError("holds characters that cannot be kept")
    if has_secret(choices):
        raise ValueError("holds what looks like a token or password; give it to the workers' environment")
    return choices


#: What a person chose beyond the form's own fields: parameters of a recipe, keys of an engine.
Choices = Annotated[dict[str, Any], AfterValidator(check_choices)]
