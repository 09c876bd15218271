"""What connects domains that do not import each other is complete, and what is not connected fails."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
import trellis_api.wiring  # noqa: F401
from sqlmodel import Session
from trellis_api.core import uses
from trellis_api.core.provided import NotProvided, Provided
from trellis_api.core.uses import Use, Used, UsersUnknown, one_by_one
from trellis_api.jobs.sweep_names import EXPRESS_SWEEP, MAP_SWEEP_NAMES
from trellis_api.workflows.presentation import SUMMARISE_JOBS

ROOT = Path(__file__).parents[2]
API = ROOT / "backend" / "trellis_api"
#: No finder of these tests asks the database.
SESSION = cast(Session, None)


def test_all_users_of_all_kinds_are_registered() -> None:
    registered = {kind.noun: kind.users for kind in uses.KINDS}

    assert registered == {
        "dataset": ("jobs", "evaluations", "rewards", "data_tasks", "job_pipelines", "sweeps"),
        "version of a dataset": (
            *("jobs", "evaluations", "data_tasks", "rewards", "models", "job_pipelines", "sweeps"),
        ),
        "model": (
            *("jobs", "rewards", "data_tasks", "transfers", "registry", "endpoints"),
            *("job_pipelines", "sweeps"),
        ),
        "reward file": ("rewards", "evaluations", "job_pipelines", "sweeps"),
        "benchmark": ("evaluations", "job_pipelines", "sweeps"),
        "environment": ("jobs", "job_pipelines", "sweeps"),
        "workflow": ("jobs", "job_pipelines", "sweeps"),
        "upload": ("data_tasks", "fine_tuning"),
    }


def test_every_kind_is_listed() -> None:
    kinds = {value.noun for value in vars(uses).values() if isinstance(value, Used)}

    assert kinds == {kind.noun for kind in uses.KINDS}


def test_every_finder_of_a_domain_is_registered() -> None:
    written = {
        f"{path.parent.name}.{node.name}"
        for path in API.glob("*/uses.py")
        if "from trellis_api.core.uses import" in path.read_text()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("find_")
    }
    wiring = ast.parse((API / "wiring.py").read_text())
    used = {ast.unparse(node) for node in ast.walk(wiring) if isinstance(node, ast.Attribute)}

    assert len(written) >= 15
    assert written - used == set()


def test_what_a_domain_is_provided_with_is_there() -> None:
    assert all(each.is_set for each in (MAP_SWEEP_NAMES, EXPRESS_SWEEP, SUMMARISE_JOBS))


@pytest.mark.parametrize("module", ["trellis_api.main", "trellis_workers.core.app"])
def test_processes_connect_the_domains_when_they_start(module: str) -> None:
    code = f"import {module}; from trellis_api.core.uses import KINDS; print(all(k.users for k in KINDS))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )

    assert done.stdout.split() == ["True"]


def test_a_kind_without_registered_users_is_not_taken_for_unused() -> None:
    kind: Used[str] = Used("thing")

    with pytest.raises(UsersUnknown, match=r"thing.*trellis_api\.wiring"):
        kind.find(SESSION, "a")
    with pytest.raises(UsersUnknown):
        kind.map(SESSION, [])


def test_a_function_that_nobody_provides_cannot_be_called() -> None:
    function: Provided[[int], int] = Provided("numbers")

    with pytest.raises(NotProvided, match=r"numbers.*trellis_api\.wiring"):
        function(1)
    function.provide(lambda number: number + 1)

    assert function(1) == 2
    with pytest.raises(ValueError, match="already"):
        function.provide(lambda number: number)


def test_users_are_listed_in_the_order_of_their_domains_and_each_once() -> None:
    kind: Used[str] = Used("thing")
    job, run = Use("job", "job_a", "z"), Use("dry_run", "dry_a")
    kind.register("jobs", one_by_one(lambda _, key: [job] if key == "a" else []))
    kind.register("rewards", lambda _, __: {"a": [run, Use("job", "job_a", "again")]})

    assert kind.map(SESSION, ["a", "b"]) == {"a": [job, run], "b": []}
    assert [use.label for use in kind.find(SESSION, "a")] == ["z", "dry_a"]
    assert uses.list_labels([job, run, run]) == ["dry_a", "z"]
    with pytest.raises(ValueError, match="already"):
        kind.register("jobs", one_by_one(lambda _, __: []))
