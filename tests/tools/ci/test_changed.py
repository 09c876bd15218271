"""Which parts of the tests a change can reach."""

from pathlib import Path

import pytest
from trellis_cli.errors import Problem
from trellis_tools.ci.changed import explain, find_importers, find_reach, list_tests, name_module
from trellis_tools.ci.results import git
from trellis_tools.ci.runner import Part, list_parts

PARTS = list_parts()


def reached(*files: str) -> set[str]:
    """Names of the parts that a change of these files reaches."""
    changed = {module for file in files if (module := name_module(file))}
    modules = changed | find_importers(changed)
    return {name for name, part in PARTS.items() if explain(part, files, modules)}


def test_a_file_of_a_package_is_its_module() -> None:
    assert name_module("backend/trellis_api/jobs/service.py") == "trellis_api.jobs.service"
    assert name_module("backend/trellis_api/jobs/__init__.py") == "trellis_api.jobs"
    assert name_module("tests/support/trellis_testing/waiting.py") == "trellis_testing.waiting"
    assert name_module("docs/api.md") is None


def test_a_data_file_is_the_package_that_it_lies_in() -> None:
    assert name_module("recipes/trellis_recipes/catalogue/grpo.yaml") == "trellis_recipes"


def test_importers_are_found_over_several_imports_and_in_the_tests_library() -> None:
    importers = find_importers({"trellis_contracts.recipe"})

    assert "trellis_recipes.catalogue" in importers
    assert "trellis_api.main" in importers
    assert "trellis_testing.engine_runs" in importers


def test_a_page_reaches_the_browser_part_alone() -> None:
    assert reached("frontend/src/jobs/JobList.vue") == {"browser"}


def test_a_contract_reaches_every_package() -> None:
    assert {"backend", "workers", "train", "platform", "proof-reinforcement"} <= reached(
        "contracts/trellis_contracts/recipe.py"
    )


def test_an_agent_does_not_reach_the_data_factory() -> None:
    parts = reached("verl/trellis_train/agents/tooluse/sampling.py")

    assert "train-agents" in parts
    assert "proof-tool-use" in parts
    assert "data" not in parts
    assert "proof-preference" not in parts


def test_a_test_reaches_its_own_part() -> None:
    assert reached("tests/data/test_schema.py") == {"data"}
    assert reached("tests/proof/test_linksearch_learns.py") == {
        name for name in PARTS if name.startswith(("proof-linksearch-learns", "proof-linksearch-seed"))
    }


def test_a_lock_reaches_everything_and_a_document_what_reads_it() -> None:
    assert reached("requirements/cpu.lock") == set(PARTS)
    assert reached("docs/recipes.md") == {"tools"}


def test_conftest_files_of_the_folders_above_belong_to_a_part(tmp_path: Path) -> None:
    files = list_tests(Part("one", ("tests/e2e/dashboard/test_shell.py",), 60))

    assert [file.name for file in files].count("conftest.py") == 3


def test_a_commit_that_git_does_not_know_is_named() -> None:
    with pytest.raises(Problem, match="no-such-commit"):
        find_reach("no-such-commit")


def test_an_option_is_no_commit() -> None:
    with pytest.raises(Problem):
        find_reach("--output=/tmp/x")


def test_the_files_of_a_change_are_those_between_a_commit_and_the_checkout() -> None:
    reach = find_reach("HEAD")

    assert reach.base == git("rev-parse", "HEAD").strip()
    assert set(reach.files) >= set(git("diff", "--name-only", "HEAD").split())
