"""Finds where modules replace or override what belongs to an engine.

``python engine_assignments.py FOLDER`` prints the places and counts them. It reads sources alone, so that it
can be run on any state of the checkout.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENGINES = frozenset(
    {"verl", "vllm", "transfer_queue", "torch", "ray", "trl", "transformers", "tensordict", "importlib"}
)


@dataclass(frozen=True)
class Place:
    """One line that replaces something of an engine."""

    path: Path
    line: int
    what: str
    #: Dotted path of an attribute of an engine that is assigned to.
    target: str = ""


def find_places(path: Path) -> Iterator[Place]:
    """Yield assignments to attributes of an engine's objects, and private methods of its subclasses."""
    tree = ast.parse(path.read_text())
    imported = dict(_imports(tree))
    for node in ast.walk(tree):
        for target in _targets(node):
            root = _root(target)
            if root in imported:
                name = ".".join([imported[root], *_attributes(target)])
                yield Place(path, target.lineno, f"{name} = ...", name)
        if isinstance(node, ast.ClassDef) and any(_root(base) in imported for base in node.bases):
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and _is_private(method.name):
                    yield Place(path, method.lineno, f"{ast.unparse(node.bases[0])}.{method.name}")
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "patch_after_import"):
            yield Place(path, node.lineno, ast.unparse(node))


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in ENGINES:
                    yield alias.asname or alias.name.partition(".")[0], alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ENGINES:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        found = [node.target]
    else:
        return []
    return [each for each in found if isinstance(each, ast.Attribute | ast.Subscript)]


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _attributes(node: ast.AST) -> list[str]:
    """Return the names after the first, up to an index."""
    names: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        names = [node.attr, *names] if isinstance(node, ast.Attribute) else []
        node = node.value
    return names


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def main(folder: str) -> None:
    """Print every place, and how many there are in how many files and folders."""
    places = [place for path in sorted(Path(folder).rglob("*.py")) for place in find_places(path)]
    for place in places:
        print(f"{place.path}:{place.line}: {place.what}")
    files = {place.path for place in places}
    print(f"{len(places)} places in {len(files)} files of {len({path.parent for path in files})} folders")


if __name__ == "__main__":
    main(sys.argv[1])
