"""Time budgets: suites over them are named, on slower machines they are larger."""

import time
from pathlib import Path

import pytest
from trellis_tools.ci import budgets
from trellis_tools.ci.budgets import SuiteTime


@pytest.fixture(autouse=True)
def _budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "list_budgets", lambda: {"cli": 100.0, "data": 40.0})


def test_a_suite_within_its_budget_is_no_overrun() -> None:
    assert budgets.find_overruns({"cli": SuiteTime(100, []), "other": SuiteTime(999, [])}, 1.0) == []


def test_a_suite_up_to_a_quarter_over_its_budget_is_a_warning() -> None:
    (overrun,) = budgets.find_overruns({"cli": SuiteTime(125, [("tests.cli.test_x", 30.0)])}, 1.0)

    assert not overrun.is_failure
    assert "cli: 125 s, 25% over its budget of 100 s" in str(overrun)
    assert "30.0 s  tests.cli.test_x" in str(overrun)


def test_a_suite_beyond_a_quarter_over_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "seconds.json"
    budgets.record({"cli": SuiteTime(126, [("slowest", 9.0)]), "data": SuiteTime(1, [])}, 1.0, path)

    found = budgets.read_record(path)
    assert found is not None
    monkeypatch.setattr(budgets, "read_record", lambda: found)

    assert budgets.main() == 1
    assert "slowest" in capsys.readouterr().out


def test_budgets_grow_with_the_slowness_of_the_machine() -> None:
    assert budgets.find_overruns({"cli": SuiteTime(190, [])}, 2.0) == []
    assert budgets.find_overruns({"cli": SuiteTime(251, [])}, 2.0)[0].is_failure


def test_without_a_record_nothing_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(budgets, "read_record", lambda: None)

    assert budgets.main() == 0
    assert "has not run" in capsys.readouterr().out


def test_a_machine_is_never_taken_for_faster_than_the_reference() -> None:
    assert budgets.measure_slowdown() >= 1.0


def test_a_core_that_gets_slower_while_tests_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.1, *[3 * budgets.REFERENCE_S] * 1000])
    monkeypatch.setattr(budgets, "_probe", lambda: next(seconds))
    monkeypatch.setattr(budgets, "_read_stolen", lambda: (0, 0))

    speed = budgets.SpeedWatch(every_s=0.001)
    at_first = speed.slowdown
    with speed:
        while speed.slowdown < 2:
            time.sleep(0.001)

    assert at_first == pytest.approx(1.0)
    assert speed.slowdown == pytest.approx(3.0)


def test_time_given_to_other_machines_is_slowness(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([(0, 0), (50, 100)])
    monkeypatch.setattr(budgets, "_probe", lambda: budgets.REFERENCE_S)
    monkeypatch.setattr(budgets, "_read_stolen", lambda: next(ticks))

    assert budgets.SpeedWatch().slowdown == pytest.approx(2.0)


def test_the_probe_and_the_ticks_of_this_machine_are_read() -> None:
    stolen, every = budgets._read_stolen()

    assert budgets._probe() > 0
    assert 0 <= stolen <= every
