"""What is changed in the engines is registered, and the layer for CPUs can be left out."""

import ast
from collections.abc import Iterator
from pathlib import Path

from trellis_testing.engine_assignments import find_places
from trellis_train.compat.catalogue import list_changes

TRAIN = Path(__file__).parents[2] / "verl" / "trellis_train"
LAYER = "trellis_train.cpu"
#: They name the layer, and import it when it is asked for.
NAMING = {TRAIN / "platform" / "layer.py", TRAIN / "compat" / "catalogue.py"}


def list_files(*, without: str) -> list[Path]:
    return [path for path in sorted(TRAIN.rglob("*.py")) if path.parts[len(TRAIN.parts)] != without]


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_imports_the_layer_for_cpus() -> None:
    files = list_files(without="cpu")
    importing = [
        path for path in files if any(f"{name}.".startswith(f"{LAYER}.") for name in imported_modules(path))
    ]
    naming = {path for path in files if f'"{LAYER}.' in path.read_text()}

    assert importing == []
    assert naming == NAMING


def test_whatever_is_assigned_to_an_engine_is_registered() -> None:
    registered = {change.target for change in list_changes()}
    places = [place for path in list_files(without="compat") for place in find_places(path) if place.target]

    assert [place for place in places if place.target not in registered] == []
    assert places


def test_modules_are_patched_by_the_registry_alone() -> None:
    users = [path for path in list_files(without="compat") if "patch_after_import" in path.read_text()]

    assert users == []
