"""Runs that are killed: the runner, a worker, again and again; nothing is lost and nothing is different."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Layout
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.report import RunReport
from trellis_data.pipeline.runner import Options, run
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("small_operators"), pytest.mark.faults]
TEXT = Layout(DataFormat.TEXT, {"text": "text"})
OPTIONS = {"processes": 2, "batch_rows": 20, "unit_rows": 60}
Shards = Callable[..., list[Path]]

RUNNER = """
import json, sys
from pathlib import Path
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import DataFormat
from trellis_data import catalogue
from trellis_data.layout import Layout
from trellis_data.pipeline.runner import Options, run
catalogue._MODULES = (*catalogue._MODULES, "trellis_testing.data_operators")
asked = json.loads(sys.argv[1])
run(Pipeline.model_validate(asked["pipeline"]), [Path(each) for each in asked["files"]], Path(asked["work"]),
    layout=Layout(DataFormat.TEXT, {"text": "text"}), options=Options(**asked["options"]))
"""


def rows(count: int = 600) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"row {i % 150}"} for i in range(count)]


def pipeline(*steps: dict[str, Any]) -> Pipeline:
    return Pipeline.model_validate({"name": "p", "steps": list(steps)})


def slow(seconds: float) -> dict[str, Any]:
    return {"operator": "test_slow", "params": {"seconds": seconds}}


STEPS = (
    {"operator": "test_shout"},
    slow(0.05),
    {"operator": "test_drop_seen"},
    slow(0.05),
    {"operator": "test_split"},
)


def left(work: Path) -> dict[str, bytes]:
    """Rows and decisions of a run, and its report without times."""
    found = {
        str(path.relative_to(work)): path.read_bytes()
        for folder in ("output", "dropped", "reduced")
        for path in (work / folder).rglob("*")
        if path.is_file() and path.name != "trellis-seconds.json"
    }
    report = json.loads((work / "report.json").read_text())
    report["seconds"] = report["peak_memory_bytes"] = 0
    report["steps"] = [{**step, "seconds": 0} for step in report["steps"]]
    return found | {"report": json.dumps(report).encode()}


def start(work: Path, files: list[Path], asked: Pipeline) -> "subprocess.Popen[bytes]":
    wanted = {
        "pipeline": asked.model_dump(mode="json"),
        "files": [str(each) for each in files],
        "work": str(work),
        "options": OPTIONS,
    }
    support = Path(__file__).resolve().parents[2] / "support"
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, json.dumps(wanted)],
        env={**os.environ, "PYTHONPATH": str(support)},
    )


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in listed.read_text().split()] if listed.exists() else []


def count_done(work: Path) -> int:
    return len(list(work.glob("stages/*/units/??????/report.json")))


def test_a_runner_killed_at_any_moment_goes_on_and_leaves_the_same(shards: Shards, tmp_path: Path) -> None:
    files, whole, work = shards(rows()), tmp_path / "whole", tmp_path / "killed"
    run(pipeline(*STEPS), files, whole, layout=TEXT, options=Options(**OPTIONS))

    kills, workers = 0, []
    for wait_s in (0.0, 0.15, 0.3, 0.1):
        before = count_done(work)
        process = start(work, files, pipeline(*STEPS))
        wait_until(lambda: count_done(work) > before or process.poll() is not None, 60, "a unit more")  # noqa: B023
        time.sleep(wait_s)
        if process.poll() is None:
            workers += children_of(process.pid)
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait(30)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 10, "workers end")
    is_half = not (work / "report.json").exists()
    run(pipeline(*STEPS), files, work, layout=TEXT, options=Options(**OPTIONS))

    assert (kills >= 3, is_half, len(workers) >= 6) == (True, True, True)
    assert left(work) == left(whole)
    assert not list(work.rglob("*unfinished*"))


def test_a_killed_worker_is_replaced_and_nothing_is_lost(shards: Shards, tmp_path: Path) -> None:
    files, whole, work = shards(rows()), tmp_path / "whole", tmp_path / "killed"
    run(pipeline(*STEPS), files, whole, layout=TEXT, options=Options(**OPTIONS))

    process = start(work, files, pipeline(*STEPS))
    wait_until(lambda: count_done(work) >= 2, 60, "units are done")
    os.kill(children_of(process.pid)[0], signal.SIGKILL)

    assert process.wait(120) == 0
    assert left(work) == left(whole)


def test_a_worker_that_dies_once_is_forgiven(shards: Shards, tmp_path: Path) -> None:
    deadly = {"operator": "test_deadly", "params": {"marker": str(tmp_path / "died")}}

    report = run(pipeline(deadly), shards(rows()), tmp_path / "w", layout=TEXT, options=Options(**OPTIONS))

    assert (tmp_path / "died").exists()
    assert report.rows_out == 600


def test_a_worker_that_dies_again_is_told_with_its_rows(shards: Shards, tmp_path: Path) -> None:
    work = tmp_path / "w"
    deadly = {"operator": "test_deadly", "params": {"marker": str(tmp_path / "died"), "how": "always"}}

    with pytest.raises(
        PipelineProblem, match=r"part-0\.parquet, rows 0 to 50.*2 times \(signal 9\)"
    ) as caught:
        run(pipeline(deadly), shards(rows()), work, layout=TEXT, options=Options(**OPTIONS))

    assert caught.value.code == "worker_died"
    assert not (work / "output").exists()


def test_two_runs_do_not_share_a_folder(shards: Shards, tmp_path: Path) -> None:
    files, work = shards(rows()), tmp_path / "w"
    first = start(work, files, pipeline(slow(0.2)))
    wait_until(lambda: count_done(work) >= 1, 60, "a unit is done")

    with pytest.raises(PipelineProblem) as caught:
        run(pipeline(slow(0.2)), files, work, layout=TEXT, options=Options(**OPTIONS))
    code = first.wait(120)

    assert caught.value.code == "work_folder_busy"
    assert code == 0
    assert RunReport.model_validate_json((work / "report.json").read_text()).rows_out == 600
