"""What speaks against a request, as tests look at it."""

from collections.abc import Iterable

from trellis_recipes.issues import Issue


def codes(issues: Iterable[Issue]) -> list[str]:
    """Return the codes, in order."""
    return [issue.code for issue in issues]
