"""Runs of parts: kept, continued after an interruption, and held against feature_list.json."""

from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_tools.ci import features, results, runner, runs
from trellis_tools.ci.commands import Command

Checkout = Callable[..., None]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout with the parts ``one`` and ``two``; each is a file of tests with this content."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -p no:schemathesis\n")
    (tmp_path / "features.json").write_text("[]")
    parts = {name: runner.Part(name, (f"tests/{name}/test_{name}.py",), 120) for name in ("one", "two")}
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(results, "COMPLETE_FOLDER", tmp_path / "results" / "all")
    monkeypatch.setattr(results, "PASSED", tmp_path / "results" / "passed.json")
    monkeypatch.setattr(results, "identify_tree", lambda: "a-commit")
    monkeypatch.setattr(runs, "list_parts", lambda: parts)
    monkeypatch.setattr(
        runs, "choose_parts", lambda names: [parts[name] for name in names] or [*parts.values()]
    )
    monkeypatch.setattr(features, "find_unproven", lambda cases: [])
    plan = runs.pytest_command

    def plan_here(name: str, tests: list[str], report: Path, *options: str) -> Command:
        command = plan(name, tests, report, *options)
        return Command(command.name, command.arguments, tmp_path, command.environment)

    monkeypatch.setattr(runs, "pytest_command", plan_here)

    def write(**contents: str) -> None:
        for name, content in contents.items():
            path = tmp_path / "tests" / name / f"test_{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    return write


GOOD = "from pathlib import Path\ndef test_it():\n    Path('{0}').write_text(Path('{0}').read_text() + 'x')\n"
BAD = "def test_it():\n    assert False\n"


def counted(tmp_path: Path, name: str) -> str:
    """A test that passes and notes that it ran."""
    (tmp_path / name).write_text("")
    return GOOD.format(name)


def test_a_part_that_passed_is_not_run_again_and_one_that_failed_is(
    checkout: Checkout, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    checkout(one=counted(tmp_path, "first"), two=BAD)

    is_good = runs.run_complete([], is_fresh=False)
    checkout(two=counted(tmp_path, "second"))
    is_good_then = runs.run_complete([], is_fresh=False)

    assert (is_good, is_good_then) == (False, True)
    assert (tmp_path / "first").read_text() == "x"
    assert (tmp_path / "second").read_text() == "x"
    assert results.read_json(tmp_path / "results" / "passed.json") == ["a-commit"]
    shown = capfd.readouterr().out
    assert "1 passed, 1 failed, 0 skipped" in shown
    assert "2 passed, 0 failed, 0 skipped" in shown


def test_one_part_alone_makes_no_claim_about_all(checkout: Checkout, tmp_path: Path) -> None:
    checkout(one=counted(tmp_path, "first"), two=BAD)

    assert runs.run_complete(["one"], is_fresh=False)
    assert runs.run_complete(["one"], is_fresh=True)

    assert (tmp_path / "first").read_text() == "xx"
    assert not (tmp_path / "results" / "passed.json").exists()


#: As ``proof_report.py`` writes it.
PROOF = """
import json, os
def test_it():
    row = {"recipe": "grpo, seed 7", "measure": "reward", "control": 0.25, "trained": 0.5}
    with open(os.environ["TRELLIS_PROOF_REPORT"], "a") as file:
        file.write(json.dumps({**row, "error": None, "seconds": 1.0}) + "\\n")
"""


def test_what_a_part_measured_is_shown_and_kept(
    checkout: Checkout, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    checkout(one=PROOF, two=counted(tmp_path, "second"))

    assert runs.run_complete(["one"], is_fresh=False)
    assert runs.run_complete(["one"], is_fresh=True)
    capfd.readouterr()
    assert runs.run_complete(["two"], is_fresh=False)

    shown = capfd.readouterr().out
    assert shown.count("grpo, seed 7") == 1
    assert "+0.250" in shown


def test_parts_run_on_after_one_has_failed(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LANES", 1)
    runs.list_parts()["three"] = runner.Part("three", ("tests/three/test_three.py",), 120)
    checkout(one=BAD, two=counted(tmp_path, "second"), three=counted(tmp_path, "third"))

    assert not runs.run_complete([], is_fresh=False)

    assert (tmp_path / "second").read_text() == "x"
    assert (tmp_path / "third").read_text() == "x"


def test_a_part_that_ended_before_its_tests_is_named_below_the_counts(
    checkout: Checkout, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    checkout(one=counted(tmp_path, "first"), two="import os\ndef test_it():\n    os._exit(1)\n")

    is_good = runs.run_complete([], is_fresh=False)

    assert not is_good
    assert capfd.readouterr().out.splitlines()[-2:] == [
        "1 passed, 0 failed, 0 skipped",
        "did not finish: two",
    ]
