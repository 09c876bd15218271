"""Time budgets: suites over them are named, on slower machines they are larger."""

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
