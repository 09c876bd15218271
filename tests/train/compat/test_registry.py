"""Every entry of the registry says what it must, is tested, and fits the installed engines."""

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
from trellis_train.compat import isolation
from trellis_train.compat.catalogue import list_changes
from trellis_train.compat.change import NONE_FOUND, Change, Kind, Way
from trellis_train.compat.checking import check
from trellis_train.compat.records import read_records

ROOT = Path(__file__).parents[3]
CHANGES = list_changes()
#: Each replaced private symbol is a risk at every upgrade; methods that subclasses override come on top.
MOST_REPLACED = 40
each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.target}-{change.group}")


@cache
def list_tests(path: Path) -> frozenset[str]:
    """Names of test functions of a file."""
    nodes = ast.walk(ast.parse(path.read_text()))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in nodes if isinstance(node, kinds) and node.name.startswith("test_"))


@each_change
def test_the_installed_symbol_is_the_one_that_the_change_was_written_for(change: Change) -> None:
    finding = check(change)

    assert finding.state == "ok", finding.problem


@each_change
def test_an_entry_says_what_it_does_and_what_one_sees_without_it(change: Change) -> None:
    assert change.kind in get_args(Kind)
    assert change.way in get_args(Way)
    assert (change.replace is not None) == (change.way == "assigned")
    for sentence in (change.does, change.without):
        assert re.fullmatch(r"\S.*\.", sentence), sentence
    assert change.upstream == NONE_FOUND or re.fullmatch(
        r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", change.upstream
    )


@each_change
def test_the_tests_that_an_entry_names_exist(change: Change) -> None:
    assert change.tests
    for test in change.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), path
        assert name in ("*", *list_tests(ROOT / path)), test


def test_few_symbols_are_replaced_outside_the_optional_layer() -> None:
    replaced = [
        change.target
        for change in CHANGES
        if change.way in ("assigned", "on_object") and not change.group.startswith("cpu-")
    ]

    assert len(replaced) <= MOST_REPLACED, "use an extension point of the engine, or remove a replacement"


def test_nothing_is_recorded_that_no_entry_has() -> None:
    assert set(read_records()) == {change.target for change in CHANGES}


@pytest.mark.parametrize(
    ("literal", "package", "files"),
    [
        (
            f"{isolation.SOCKET_PREFIX}{{",
            "verl",
            {"workers/rollout/vllm_rollout/vllm_rollout.py", "workers/rollout/vllm_rollout/utils.py"},
        ),
        (
            f'namespace="{isolation.SHARED_NAMESPACE}"',
            "transfer_queue",
            # The second is of a backend that no job has.
            {"interface.py", "storage/clients/ray_storage_client.py"},
        ),
    ],
    ids=["sockets", "namespaces"],
)
def test_what_jobs_would_share_is_named_nowhere_else(literal: str, package: str, files: set[str]) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    (folder,) = map(Path, spec.submodule_search_locations)

    def strip_comments(text: str) -> str:
        return "\n".join(line.partition("#")[0] for line in text.splitlines())

    found = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if literal in strip_comments(path.read_text())
    }

    assert found == files
