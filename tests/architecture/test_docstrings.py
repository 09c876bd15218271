"""The first word of a function's docstring is a verb: what the function does, not what it is about."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from trellis_tools.ci.packages import ROOTS

ROOT = Path(__file__).parents[2]
#: Ruff's D401 takes every word that it does not know for a verb; a new one is added here.
VERBS = frozenset((Path(__file__).parent / "verbs.txt").read_text(encoding="utf-8").split())


def list_docstrings(root: Path) -> Iterator[tuple[str, str]]:
    """List places and docstrings of the functions below a folder, properties aside: those are values."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            decorators = [ast.unparse(each) for each in node.decorator_list]
            is_value = any("property" in each or each.endswith(".setter") for each in decorators)
            docstring = ast.get_docstring(node)
            if docstring and not is_value:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", docstring


def starts_with_verb(docstring: str) -> bool:
    """Tell whether the first word is a known verb; "Name of the ..." is the noun."""
    found = re.match(r"\W*([\w-]+)(?:\s+(of)\b)?", docstring)
    return found is not None and found[1] in VERBS and found[2] is None


@pytest.mark.parametrize("folder", ROOTS.values())
def test_a_docstring_of_a_function_starts_with_a_verb(folder: str) -> None:
    others = [
        f"{place}: {text.splitlines()[0]}"
        for place, text in list_docstrings(ROOT / folder)
        if not starts_with_verb(text)
    ]

    assert others == [], "say what the function does; a new verb is added to verbs.txt"
