"""How tasks are handed to Ray and what comes back, with a stand-in for the cluster that runs them at once."""

import socket
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.report import Progress
from trellis_data.pipeline.runner import Options, run

pytestmark = pytest.mark.usefixtures("small_operators")
TEXT = Layout(DataFormat.TEXT, {"text": "text"})
ON_RAY = Options(executor="ray", batch_rows=20, unit_rows=100)


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Remote:
    def __init__(self, function: Callable[[Any], int]) -> None:
        self._function = function

    def remote(self, task: Any) -> Callable[[], int]:
        return lambda: self._function(task)


def get(reference: Callable[[], int]) -> int:
    try:
        return reference()
    except Exception as error:
        raise RayTaskError(error) from error


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = types.ModuleType("ray.exceptions")
    vars(exceptions).update(RayError=RayError, RayTaskError=RayTaskError)
    ray = types.ModuleType("ray")
    vars(ray).update(
        is_initialized=lambda: True,
        remote=lambda **options: _Remote,
        wait=lambda references, timeout: (references[:1], references[1:]),
        get=get,
        cancel=lambda reference, force: None,
        exceptions=exceptions,
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", exceptions)


def pipeline(*steps: Any) -> Pipeline:
    return Pipeline.model_validate({"name": "p", "steps": list(steps)})


def test_rows_pass_all_phases_and_progress_is_told(shards: Callable[..., list[Path]], tmp_path: Path) -> None:
    files = shards([{"id": i, "text": f"row {i % 150}"} for i in range(400)])
    told: list[Progress] = []

    steps = pipeline({"operator": "test_shout"}, {"operator": "test_drop_seen"})
    report = run(steps, files, tmp_path / "w", layout=TEXT, options=ON_RAY, on_progress=told.append)

    assert report.rows_out == 150
    assert told[-1].rows_done == told[-1].rows


def test_an_error_keeps_its_step_and_rows(shards: Callable[..., list[Path]], tmp_path: Path) -> None:
    files = shards([{"id": i, "text": "x"} for i in range(40)])
    bad = pipeline({"operator": "test_deadly", "params": {"how": "raise"}})

    with pytest.raises(PipelineProblem, match=r"part-0\.parquet.*seven is unlucky") as caught:
        run(bad, files, tmp_path / "w", layout=TEXT, options=ON_RAY)

    assert caught.value.step == "test_deadly"


def test_a_cluster_that_is_away_is_told_at_once(
    shards: Callable[..., list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = shards([{"id": i, "text": "x"} for i in range(40)])
    monkeypatch.setattr(sys.modules["ray"], "is_initialized", lambda: False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        options = replace(ON_RAY, ray_address=address)

        with pytest.raises(PipelineProblem, match=address) as caught:
            run(pipeline({"operator": "test_shout"}), files, tmp_path / "w", layout=TEXT, options=options)

    assert caught.value.code == "ray_unreachable"
