"""How Ray starts the processes of an isolated run."""

import os
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from trellis_contracts.attempt import ISOLATION_FILE
from trellis_contracts.isolation import STATE_VARIABLE
from trellis_train.engines.cluster import isolated_interpreter


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    (tmp_path / ISOLATION_FILE).write_text("{}")
    return cast("Any", SimpleNamespace(attempt_dir=str(tmp_path)))


@pytest.mark.parametrize("state", ["off", None])
def test_a_run_that_is_not_isolated_has_python_itself(
    spec: Any, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    monkeypatch.delenv(STATE_VARIABLE, raising=False)
    if state is not None:
        monkeypatch.setenv(STATE_VARIABLE, state)

    assert isolated_interpreter(spec) is None


def test_processes_of_an_isolated_run_see_what_the_driver_sees(
    spec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, "on")

    words = shlex.split(isolated_interpreter(spec) or "")

    rules = f"{spec.attempt_dir}/{ISOLATION_FILE}"
    start = [sys.executable, "-P", "-m", "trellis_contracts.isolated"]
    assert words == [*start, f"--beside={os.getpid()}", rules, sys.executable]
