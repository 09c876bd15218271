"""The further figures that a person's reward file returns beside its score, read without running it.

A run needs their names before the first response: each response must report the same ones.
"""

import ast
import re
from collections.abc import Iterator

#: The file names them so: ``PARTS = ["brevity", "tone"]``.
NAME = "PARTS"
MAX_PARTS = 8
_PART = re.compile(r"[a-z][a-z0-9_]{0,31}")


class BadParts(ValueError):
    """The names cannot be read, or not be used; the message is for the person."""


def find_parts(tree: ast.Module) -> tuple[str, ...]:
    """Return the reward part names that the file defines, in order; empty if it defines none."""
    value = next(_assigned(tree), None)
    return () if value is None else _check(value)


def _assigned(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the values that the file assigns to the name of its reward parts, last one first."""
    for statement in reversed(tree.body):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if any(isinstance(target, ast.Name) and target.id == NAME for target in targets):
            yield statement.value


def _check(value: ast.expr) -> tuple[str, ...]:
    place = f"Line {value.lineno}: {NAME}"
    try:
        names = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        names = None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise BadParts(f'{place} must be a list of names as they stand, such as ["brevity", "tone"].')
    if len(names) > MAX_PARTS:
        raise BadParts(f"{place} has {len(names)} names; {MAX_PARTS} figures may stand beside a score.")
    for name in names:
        if not _PART.fullmatch(name) or name == "score":
            raise BadParts(
                f"{place}: '{name[:64]}' cannot name a figure: a small letter, then up to 31 small "
                "letters, digits and underscores, and not 'score'."
            )
    if len(set(names)) < len(names):
        raise BadParts(f"{place} has a name twice.")
    return tuple(names)
