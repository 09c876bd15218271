"""`trellis engines compat`: the table, JSON, and an exit code that a gate can rely on."""

import json
import re
from typing import Any

import pytest
from trellis_cli import engines
from trellis_cli.errors import ExitCode
from trellis_cli.main import app
from typer.testing import CliRunner

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return engines.read_rows()


def give(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]) -> None:
    monkeypatch.setattr(engines, "read_rows", lambda: rows)


def test_all_changes_fit_the_installed_engines(
    monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    give(monkeypatch, rows)
    done = RUNNER.invoke(app, ["engines", "compat"])

    assert done.exit_code == 0, done.output
    assert done.output.count("\n") > len(rows)
    counts = re.search(
        r"(\d+) symbols: (\d+) replaced, (\d+) overridden in subclasses, (\d+) called, "
        r"(\d+) in the optional CPU layer; 0 changed upstream\.",
        done.output,
    )
    assert counts is not None
    total, *parts = map(int, counts.groups())
    assert total == sum(parts) == len(rows)
    assert "verl.utils.model.load_valuehead_model" in done.output


def test_what_moved_is_named_with_its_symptom_and_fails(
    monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    moved = rows[0] | {"state": "moved", "problem": "its source was a and is b", "place": "verl/model.py:7"}
    give(monkeypatch, [moved, *rows[1:]])
    done = RUNNER.invoke(app, ["engines", "compat"])

    assert done.exit_code == ExitCode.FAILED
    for said in ("its source was a and is b", "verl/model.py:7", moved["without"], "1 changed upstream"):
        assert said in done.output


def test_the_table_is_there_as_json(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]) -> None:
    give(monkeypatch, [row | {"state": "gone"} for row in rows])
    done = RUNNER.invoke(app, ["engines", "compat", "--json"])

    assert done.exit_code == ExitCode.FAILED
    assert {row["state"] for row in json.loads(done.output)} == {"gone"}


def test_an_engine_that_is_not_installed_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    give(monkeypatch, [row | {"state": "absent"} for row in rows])
    done = RUNNER.invoke(app, ["engines", "compat"])

    assert done.exit_code == 0
    assert "of engines that are not installed here" in done.output
