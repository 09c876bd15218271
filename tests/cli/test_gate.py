"""Suites run beside each other, and each one's failure is the gate's."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from trellis_cli.gate import ORDER, Step, plan_suites, run_side_by_side
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_cli.suites import SHARING, group_by_suite


def python(name: str, program: str) -> Step:
    return Step(name, [sys.executable, "-c", program])


def test_the_failed_are_named_and_all_output_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, bad = python("good", "print('fine')"), python("bad", "print('[red]broken'); raise SystemExit(3)")
    missing = Step("missing", ["no-such-command-here"])

    assert run_side_by_side([good, bad, missing], logs=tmp_path) == ["bad", "missing"]

    shown = capfd.readouterr().out
    assert "fine" in shown
    assert "[red]broken" in shown
    assert "no-such-command-here: No such file" in shown


#: Ends well once another step has begun too.
MEET = """
import sys, time
from pathlib import Path
mine, other = map(Path, sys.argv[1:])
mine.write_text(str(time.time()))
for _ in range(200):
    if other.exists():
        sys.exit(0)
    time.sleep(0.1)
sys.exit("nobody came")
"""


def test_two_run_beside_each_other_in_their_order(tmp_path: Path) -> None:
    marks = [tmp_path / str(number) for number in range(4)]
    pairs = [(marks[number], marks[number ^ 1]) for number in range(4)]
    steps = [Step(mine.name, [sys.executable, "-c", MEET, str(mine), str(other)]) for mine, other in pairs]

    assert run_side_by_side(steps, logs=tmp_path, lanes=2) == []

    began = [float(mark.read_text()) for mark in marks]
    assert max(began[:2]) < min(began[2:])


def test_suites_share_the_cores(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert all(step.environment == SHARING for step in plan_suites(tmp_path)[:-1])
    program = f"import os; assert {SHARING!r}.items() <= os.environ.items(); assert os.environ['PATH']"

    assert run_side_by_side([replace(python("look", program), environment=SHARING)], logs=tmp_path) == []


def test_every_folder_of_tests_is_run_once(tmp_path: Path) -> None:
    suites = [step.name.removeprefix("pytest ") for step in plan_suites(tmp_path)]
    folders = {path.parent.relative_to(REPOSITORY_ROOT / "tests").parts[0] for path in list_tests()}

    assert sorted(suites) == sorted([*folders, "vitest"])
    assert tuple(suites[: len(ORDER)]) == ORDER


def list_tests() -> list[Path]:
    return list((REPOSITORY_ROOT / "tests").rglob("test_*.py"))


def test_tests_are_grouped_by_their_suite_and_none_is_run_twice() -> None:
    asked = ["tests/b/c", "tests/a/test_x.py::test_it", "tests/a/test_x.py", "tests/b/c/test_y.py"]
    asked += ["tests/a/test_z.py::test_it", "tests/a/test_z.py::test_it[1]", "tests/a/test_z.py::test_items"]

    assert group_by_suite(asked) == {
        "tests/a": ["tests/a/test_x.py", "tests/a/test_z.py::test_it", "tests/a/test_z.py::test_items"],
        "tests/b": ["tests/b/c"],
    }
