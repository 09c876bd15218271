"""What connects domains that do not import each other is complete, and what is not connected fails."""

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import cast, get_args

import pytest
import trellis_api.wiring  # noqa: F401
from sqlmodel import Session
from trellis_api.core import uses
from trellis_api.core.provided import NotProvided, Provided
from trellis_api.core.uses import REFS, Use, Used, UsersUnknown, one_by_one
from trellis_api.job_pipelines.schemas import StageCreate
from trellis_api.jobs.checkpoints.service import LIST_SERVED_STEPS
from trellis_api.jobs.named import Named
from trellis_api.jobs.schemas import JobCreate
from trellis_api.jobs.service import LEAVE_ENGINE, RELEASE_CHECKPOINTS
from trellis_api.jobs.sweep_names import EXPRESS_SWEEP, FIND_SWEEP_ID, MAP_SWEEP_NAMES
from trellis_api.workflows.presentation import SUMMARISE_JOBS
from trellis_contracts.recipe import Parameter
from trellis_recipes.rewards import reward_kinds

#: What the rows, requests and documents of a domain can name that has to stay for it. (Models say what they
#: were trained on; endpoints, which adapter they serve, as their job names the base model, and which models
#: the agent code of a job calls.)
NAMES = {
    "jobs": {"dataset", "version of a dataset", "model", "environment", "workflow"},
    "evaluations": {"dataset", "version of a dataset", "reward file", "benchmark"},
    "rewards": {"dataset", "version of a dataset", "model", "reward file"},
    "data_tasks": {"dataset", "version of a dataset", "model", "upload"},
    "models": {"version of a dataset"},
    "transfers": {"model"},
    "registry": {"model"},
    "endpoints": {"model"},
    "fine_tuning": {"upload"},
}
#: The same of requests that jobs will be made from, by the attribute that lists it. Revisions may be branches
#: and tags too.
NAMED = {
    "datasets": "dataset",
    "revisions": "version of a dataset",
    "models": "model",
    "auxiliary_models": "model",
    "reward_files": "reward file",
    "benchmarks": "benchmark",
    "environments": "environment",
    "workflows": "workflow",
}
#: Domains that keep such requests until the jobs are made.
KEEP_REQUESTS = ("job_pipelines", "sweeps")
#: Fields of such requests that name something, or hold what does.
NAMING_FIELDS = {
    *("model", "dataset", "dataset_version", "validation_dataset", "validation_version"),
    *("params", "evaluate", "benchmarks"),
}
#: Fields that name nothing that can be deleted.
OTHER_FIELDS = {
    *("id", "title", "name", "kind", "needs", "tags", "recipe", "preset", "overrides", "seed", "priority"),
    *("dataset_split", "validation_split", "columns", "validation_columns"),
    *("data_format", "validation_data_format", "resources", "engine", "report_to"),
    *("exports", "export_as", "best_by", "keep_best_by", "mode"),
}

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
        "branch or tag of a dataset": ("job_pipelines", "sweeps"),
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


def test_every_domain_is_asked_of_all_kinds_that_it_can_name() -> None:
    asked: dict[str, set[str]] = {}
    for kind in uses.KINDS:
        for domain in kind.users:
            asked.setdefault(domain, set()).add(kind.noun)

    assert asked == {**NAMES, **{domain: {*NAMED.values(), REFS.noun} for domain in KEEP_REQUESTS}}
    assert {each.name for each in fields(Named)} == set(NAMED)


def test_every_field_of_a_request_that_is_kept_is_known_to_name_something_or_nothing() -> None:
    known = {*StageCreate.model_fields, *JobCreate.model_fields}

    assert known == NAMING_FIELDS | OTHER_FIELDS, "a new one that names something: jobs/named.py"
    assert NAMING_FIELDS.isdisjoint(OTHER_FIELDS)
    # Sweeps vary none of these parameters:
    plain = {"int", "float", "bool", "str", "choice"}
    assert set(get_args(Parameter.model_fields["type"].annotation)) - plain == {
        *("rewards", "environment", "workflow")
    }
    # What rewards name: judges are of the settings.
    options = [option for kind in reward_kinds().values() for option in kind.options]
    assert {each.source for each in options} == {None, "models", "reward-files", "judges"}


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
    assert all(each.is_set for each in (MAP_SWEEP_NAMES, FIND_SWEEP_ID, EXPRESS_SWEEP))
    assert all(each.is_set for each in (SUMMARISE_JOBS, LIST_SERVED_STEPS))
    assert all(each.is_set for each in (RELEASE_CHECKPOINTS, LEAVE_ENGINE))


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
