"""The fast set and the parts of all tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trellis_cli.errors import Problem
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_recipes.catalogue import list_recipes
from trellis_tools.ci import runner
from trellis_tools.ci.junit import read_cases, read_left_out
from trellis_tools.ci.runs import plan_fast, plan_part

TESTS = REPOSITORY_ROOT / "tests"
#: Suites all of whose tests train: none of them is in the fast set.
NOT_FAST = {"proof"}
LIMIT_S = 30 * 60
PRETRAINED_AGENTS = "tests/proof/pretrained/test_pretrained_agents.py"
PRETRAINED_RL = "tests/proof/pretrained/test_pretrained_reinforcement.py"


def list_test_files() -> set[str]:
    return {str(path.relative_to(REPOSITORY_ROOT)) for path in TESTS.rglob("test_*.py")}


def test_every_folder_of_tests_is_a_suite_of_the_fast_set(tmp_path: Path) -> None:
    folders = {path.split("/")[1] for path in list_test_files()}

    planned = [command.name for command in plan_fast(tmp_path)]

    assert sorted(planned) == sorted((folders - NOT_FAST) | {runner.FRONTEND})


def test_every_test_file_is_in_exactly_one_part() -> None:
    found: list[str] = []
    for part in runner.list_parts().values():
        files = {path.partition("::")[0] for path in part.paths}
        found += [file for file in list_test_files() if any(is_within(file, path) for path in files)]

    # Of some files the tests are named one by one: a part's worth of time is a seed, or some recipes.
    split = [path for part in runner.list_parts().values() for path in part.paths if "::" in path]
    assert {path.partition("::")[0] for path in split} == {
        "tests/proof/test_linksearch_learns.py",
        "tests/proof/pretrained/test_pretrained_demo.py",
        "tests/proof/pretrained/test_pretrained_evaluation.py",
        PRETRAINED_RL,
        PRETRAINED_AGENTS,
    }
    assert set(found) == list_test_files()
    assert sorted({file for file in found if found.count(file) > 1}) == sorted(
        {path.partition("::")[0] for path in split}
    )


def test_every_recipe_of_rl_is_proven_on_a_pretrained_model_by_one_part() -> None:
    paths = [path for part in runner.list_parts().values() for path in part.paths]
    named = [path for path in paths if path.startswith(f"{PRETRAINED_RL}::test_the_held_out_reward_rises[")]

    recipes = sorted(recipe.id for recipe in list_recipes() if recipe.family == "rl")
    assert sorted(path.partition("[")[2].removesuffix("]") for path in named) == recipes


def test_every_recipe_of_agents_takes_steps_on_a_pretrained_model_in_one_part() -> None:
    paths = [path for part in runner.list_parts().values() for path in part.paths]
    named = [path for path in paths if path.startswith(f"{PRETRAINED_AGENTS}::test_two_steps_are_taken")]

    # `tune` trains code of users: test_strangers_agent.py.
    recipes = [
        *sorted(recipe.id for recipe in list_recipes() if recipe.id.startswith("agent_")),
        "linksearch",
    ]
    assert sorted(path.partition("[")[2].removesuffix("]") for path in named) == recipes


def is_within(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")


def test_every_path_of_a_part_exists_and_no_part_may_take_over_half_an_hour() -> None:
    for part in runner.list_parts().values():
        assert part.limit_s <= LIMIT_S, part.name
        for path in part.paths:
            assert (REPOSITORY_ROOT / path.partition("::")[0]).exists(), path


def test_a_part_runs_each_suite_in_a_process_of_its_own(tmp_path: Path) -> None:
    part = runner.Part("mixed", ("tests/cli", "tests/sdk/test_tuning.py", "frontend"), 60)

    commands = plan_part(part, tmp_path)

    assert [command.name for command in commands] == ["mixed frontend", "mixed cli", "mixed sdk"]


def test_an_unknown_part_is_a_usage_error() -> None:
    with pytest.raises(Problem, match="no such part: brwoser"):
        runner.choose_parts(["brwoser"])


def test_tests_are_grouped_by_suite_and_each_is_listed_once() -> None:
    asked = ["tests/b/c", "tests/a/test_x.py::test_it", "tests/a/test_x.py", "tests/b/c/test_y.py"]
    asked += ["tests/a/test_z.py::test_it", "tests/a/test_z.py::test_it[1]", "tests/a/test_z.py::test_items"]

    assert runner.group_by_suite(asked) == {
        "tests/a": ["tests/a/test_x.py", "tests/a/test_z.py::test_it", "tests/a/test_z.py::test_items"],
        "tests/b": ["tests/b/c"],
    }


#: One test without a mark, one for each mark, and one that is kept all the same.
MARKED = """
import pytest

def test_plain(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.training
def test_training(): pass

@pytest.mark.browser
@pytest.mark.faults
def test_browser(): pass

@pytest.mark.faults
@pytest.mark.smoke
def test_smoke(): pass
"""


@pytest.mark.parametrize(
    ("selection", "ran", "left_out"),
    [
        (runner.FAST, {"test_plain", "test_smoke"}, {"slow": 1, "training": 1, "browser": 1}),
        (runner.LEFT_OUT, {"test_slow", "test_training", "test_browser"}, {"": 1, "faults": 1}),
    ],
)
def test_marks_decide_what_is_fast_and_what_is_left_out_is_counted(
    tmp_path: Path, selection: str, ran: set[str], left_out: dict[str, int]
) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_marked.py").write_text(MARKED)
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    marks = "\n  ".join([*runner.REASONS, "smoke"])
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\naddopts = --strict-markers -p no:schemathesis\nmarkers =\n  {marks}\n"
    )
    report = tmp_path / "report.xml"
    command = runner.pytest_command("marked", [str(folder)], report, "-m", selection)

    subprocess.run(
        [sys.executable, *command.arguments[1:]],
        cwd=tmp_path,
        env={**os.environ, **command.environment},
        check=True,
        capture_output=True,
    )

    assert {case.name.rpartition(".")[2] for case in read_cases(report)} == ran
    assert read_left_out(report) == left_out
