"""Suites run beside each other, and each one's failure is the gate's."""

import sys
import time
from pathlib import Path

import pytest
from trellis_cli.gate import HEAVY_SUITES, Step, plan_lanes, run_side_by_side
from trellis_cli.services.platform import REPOSITORY_ROOT


def python(name: str, program: str) -> Step:
    return Step(name, [sys.executable, "-c", program])


def test_the_failed_are_named_and_all_output_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, bad = python("good", "print('fine')"), python("bad", "print('[red]broken'); raise SystemExit(3)")
    missing = Step("missing", ["no-such-command-here"])

    assert run_side_by_side([good, bad], [missing], logs=tmp_path) == ["bad", "missing"]

    shown = capfd.readouterr().out
    assert "fine" in shown
    assert "[red]broken" in shown
    assert "no-such-command-here: No such file" in shown


def test_a_lane_at_its_end_helps_the_other(tmp_path: Path) -> None:
    naps = [python(f"nap {number}", "import time; time.sleep(1)") for number in range(4)]
    started = time.monotonic()

    assert run_side_by_side(naps, [], logs=tmp_path) == []

    assert time.monotonic() - started < 3.5


def test_every_folder_of_tests_is_run_once(tmp_path: Path) -> None:
    lanes = plan_lanes(tmp_path)
    suites = [step.name.removeprefix("pytest ") for lane in lanes for step in lane]
    folders = {path.parent.relative_to(REPOSITORY_ROOT / "tests").parts[0] for path in list_tests()}

    assert sorted(suites) == sorted([*folders, "vitest"])
    assert set(HEAVY_SUITES) <= folders


def list_tests() -> list[Path]:
    return list((REPOSITORY_ROOT / "tests").rglob("test_*.py"))
