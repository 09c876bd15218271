"""Workers and their children are killed, disks are full, two work at once: nothing is lost or seen twice."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import update
from trellis_api.core.columns import utc_now
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets.store import open_store
from trellis_contracts.data_tasks import DataTaskProgress
from trellis_data.versions.upkeep import verify
from trellis_testing.datasets import add_dataset
from trellis_testing.waiting import wait_until
from trellis_workers.core import processes
from trellis_workers.data import children

from .conftest import ROWS, row_of

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
ROW_COUNT = 60_000
#: Long enough to be killed in the middle: a step over all rows, then one over each.
SLOW = {
    "name": "slow",
    "steps": [
        {"operator": "minhash_duplicates", "params": {"threshold": 0.95}},
        {"operator": "normalise_text"},
        {"operator": "personal_data"},
        {"operator": "repetition"},
    ],
}
StartWorker = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start_worker(environment: dict[str, str], tmp_path: Path) -> Iterator[StartWorker]:
    """Starts processes that carry out what waits; ``within`` is a command that runs the command after it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*within: str) -> subprocess.Popen[bytes]:
        command = [*within, sys.executable, "-m", "trellis_workers.data.once"]
        log = (tmp_path / "worker.log").open("ab")
        # More than one process a pipeline, as on a real machine.
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def large(platform: Any) -> dict[str, Any]:
    """Enough rows to be killed in the middle of, and for a run of several processes."""
    rows = [row_of(n % (ROW_COUNT // 2)) | {"id": n} for n in range(ROW_COUNT)]
    with platform.database.write() as session:
        made = add_dataset(session, platform.settings, rows, name="large").id
    return dict(platform.get(f"/datasets/{made}"))


def child_of(worker: subprocess.Popen[bytes]) -> psutil.Process | None:
    children = psutil.Process(worker.pid).children()
    return children[0] if children else None


def wait_for_phase(platform: Any, task_id: str, *phases: str) -> None:
    """Until the task is in the middle of one of them."""

    path = platform.folder(task_id) / "progress.json"

    def is_there() -> bool:
        # The child's own word: the database hears it half a second later.
        return path.exists() and DataTaskProgress.model_validate_json(path.read_bytes()).phase in phases

    wait_until(is_there, 120, f"{task_id} is in {phases}", pause_s=0.02)


def stamp_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from one that was written in its place; None once it is gone."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_mtime_ns


def let_time_pass(platform: Any) -> None:
    """More than the time after which a silent worker counts as dead."""
    with platform.database.write() as session:
        session.exec(update(DataTask).values(touched_at=utc_now() - timedelta(seconds=61)))


def tree_of(platform: Any, dataset_id: str) -> str:
    """The hash of the rows at the tip."""
    versions = platform.get(f"/datasets/{dataset_id}/versions")["items"]
    return str(versions[0]["tree"])


def undisturbed(platform: Any, dataset: dict[str, Any]) -> str:
    """The rows that the pipeline makes when nothing happens."""
    platform.start_run(dataset["id"], SLOW, output={"kind": "dataset", "name": "undisturbed"})
    platform.finish(in_child=True)
    made = next(each for each in platform.get("/datasets")["items"] if each["name"] == "undisturbed")
    assert made["state"] == "ready", made
    return tree_of(platform, made["id"])


def test_a_run_goes_on_where_its_worker_was_killed(
    platform: Any, large: dict[str, Any], start_worker: StartWorker
) -> None:
    run = platform.start_run(large["id"], SLOW)
    killed = []
    for phase in ("scan", "apply"):
        worker = start_worker()
        wait_for_phase(platform, run, phase)
        child = wait_until(lambda worker=worker: child_of(worker), 20, "the child is there")
        family = [child, *child.children(recursive=True)]
        worker.kill()
        worker.wait()
        killed.append(phase)
        wait_until(
            lambda family=family: not any(each.is_running() and each.status() != "zombie" for each in family),
            10,
            "the child has left with its worker",
        )
        assert platform.get(f"/datasets/{large['id']}")["head"] == large["head"]
        assert platform.task(run)["state"] == "running"
        let_time_pass(platform)
    finished = "stages/*/*/[0-9][0-9][0-9][0-9][0-9][0-9]/*"
    done = {path: stamp_of(path) for path in (platform.folder(run) / "run").glob(finished)}
    assert done, "it was killed after some of its work was done"
    worker = start_worker()
    wait_until(lambda: platform.task(run)["attempt"] == 3, 60, "the last worker has it")
    while worker.poll() is None:
        again = [path for path, stamp in done.items() if stamp_of(path) not in (stamp, None)]
        assert not again, "what was done is done again"
        time.sleep(0.02)

    task = platform.task(run)
    assert (task["state"], task["attempt"]) == ("succeeded", 3), task
    assert len(platform.get(f"/datasets/{large['id']}/versions")["items"]) == 2
    assert tree_of(platform, large["id"]) == undisturbed(platform, large)
    assert verify(open_store(platform.settings)) == []


def test_a_run_goes_on_by_itself_when_its_process_is_killed(
    platform: Any, large: dict[str, Any], start_worker: StartWorker
) -> None:
    run = platform.start_run(large["id"], SLOW)
    worker = start_worker()
    wait_for_phase(platform, run, "apply")
    child = wait_until(lambda: child_of(worker), 20, "the child is there")
    os.killpg(child.pid, signal.SIGKILL)
    worker.wait(60)
    assert platform.task(run)["state"] == "queued"
    assert start_worker().wait(300) == 0

    task = platform.task(run)
    assert (task["state"], task["attempt"]) == ("succeeded", 2), task
    assert platform.get(f"/datasets/{large['id']}")["row_count"] < ROW_COUNT


def test_what_kills_every_process_fails_in_the_end(
    platform: Any, large: dict[str, Any], start_worker: StartWorker
) -> None:
    run = platform.start_run(large["id"], SLOW)
    for _ in range(3):
        worker = start_worker()
        child = wait_until(lambda worker=worker: child_of(worker), 60, "the child is there")
        os.killpg(child.pid, signal.SIGKILL)
        worker.wait(60)

    task = platform.task(run)
    assert (task["state"], task["cause"], task["attempt"]) == ("failed", "crashed", 3)
    assert "memory" in task["reason"]
    assert task["can_retry"]


def test_a_cancelled_run_ends_at_once_and_can_be_taken_up_again(
    platform: Any, large: dict[str, Any], start_worker: StartWorker
) -> None:
    run = platform.start_run(large["id"], SLOW)
    worker = start_worker()
    wait_for_phase(platform, run, "scan", "apply")
    child = wait_until(lambda: child_of(worker), 20, "the child is there")

    platform.post(f"/data-tasks/{run}/cancel", status=200)

    assert worker.wait(20) == 0
    assert not child.is_running()
    assert platform.task(run)["state"] == "cancelled"
    assert platform.get(f"/datasets/{large['id']}")["head"] == large["head"]
    platform.post(f"/data-tasks/{run}/retry", status=200)
    assert start_worker().wait(300) == 0
    assert platform.task(run)["state"] == "succeeded"


def test_an_import_whose_worker_was_killed_starts_clean(platform: Any, start_worker: StartWorker) -> None:
    folder = platform.settings.data_root / "mine"
    folder.mkdir()
    lines = [f'{{"prompt": "What is {n} to you and to me?", "answer": "It is {n}."}}' for n in range(150_000)]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    made = platform.post("/datasets/imports", {"source": {"kind": "path", "path": "mine"}}, 201)
    worker = start_worker()
    wait_for_phase(platform, made["task"]["id"], "read", "count", "record")
    worker.kill()
    worker.wait()
    assert platform.get(f"/datasets/{made['id']}")["state"] == "creating"
    let_time_pass(platform)
    assert start_worker().wait(300) == 0

    dataset = platform.get(f"/datasets/{made['id']}")
    assert (dataset["state"], dataset["row_count"]) == ("ready", 150_000), dataset
    assert len(platform.get(f"/datasets/{made['id']}/versions")["items"]) == 1


def test_two_workers_carry_out_each_task_once(platform: Any, start_worker: StartWorker) -> None:
    made = [platform.upload(ROWS, f"rows {n}") for n in range(4)]
    workers = [start_worker(), start_worker()]
    assert [worker.wait(300) for worker in workers] == [0, 0]

    for each in made:
        task = platform.task(each["task"]["id"])
        assert (task["state"], task["attempt"]) == ("succeeded", 1)
        assert platform.get(f"/datasets/{each['id']}")["state"] == "ready"


def test_a_worker_that_was_thought_dead_settles_nothing(platform: Any, start_worker: StartWorker) -> None:
    made = platform.upload(ROWS)
    worker = start_worker()
    child = wait_until(lambda: child_of(worker), 60, "the child is there")
    worker.send_signal(signal.SIGSTOP)
    child.suspend()
    let_time_pass(platform)
    platform.finish()
    waiting = platform.task(made["task"]["id"])
    assert (waiting["state"], waiting["attempt"]) in {("queued", 1), ("succeeded", 2)}
    child.resume()

    def is_done() -> bool:
        platform.finish()
        return bool(platform.task(made["task"]["id"])["state"] == "succeeded")

    wait_until(is_done, 60, "another worker has done it")
    assert platform.task(made["task"]["id"])["attempt"] == 2
    worker.send_signal(signal.SIGCONT)
    assert worker.wait(60) == 0

    assert not child.is_running()
    task = platform.task(made["task"]["id"])
    assert (task["state"], task["attempt"]) == ("succeeded", 2)
    assert len(platform.get(f"/datasets/{made['id']}/versions")["items"]) == 1


def test_a_full_disk_is_told_of_and_the_run_goes_on_when_there_is_room(
    platform: Any, large: dict[str, Any], start_worker: StartWorker
) -> None:
    tasks = platform.settings.data_root / "data-tasks"
    tasks.mkdir(exist_ok=True)
    mount = f'mount -t tmpfs -o size=2m none {tasks} && exec "$@"'
    within = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    if not shutil.which("unshare") or subprocess.run([*within, "true"], check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    run = platform.start_run(large["id"], SLOW)
    assert start_worker(*within).wait(300) == 0

    task = platform.task(run)
    assert (task["state"], task["cause"]) == ("failed", "disk_full"), task["reason"]
    assert platform.get(f"/datasets/{large['id']}")["head"] == large["head"]
    platform.post(f"/data-tasks/{run}/retry", status=200)
    assert start_worker().wait(300) == 0
    assert platform.task(run)["state"] == "succeeded"


def test_nothing_is_begun_on_a_disk_that_is_nearly_full(
    platform: Any, environment: dict[str, str], start_worker: StartWorker
) -> None:
    environment["TRELLIS_MIN_FREE_DISK_BYTES"] = str(2**60)
    made = platform.upload(ROWS)
    assert start_worker().wait(60) == 0

    assert platform.get(f"/datasets/{made['id']}")["task"]["cause"] == "disk_full"


class _StoppedAtFirst(children.ProcessChild):
    """Its first process is stopped before it begins."""

    begun = 0

    def __init__(self, *given: Any, **limits: Any) -> None:
        super().__init__(*given, **limits)
        type(self).begun += 1
        if self.begun == 1:
            os.kill(self._process.pid, signal.SIGSTOP)


@pytest.mark.timeout(120)
def test_an_import_whose_process_stands_still_is_begun_again(
    platform: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STANDSTILL_S", 1.0)
    monkeypatch.setattr(children, "ProcessChild", _StoppedAtFirst)
    made = platform.upload([row_of(n) for n in range(10)])

    platform.finish(in_child=True)
    after_the_first = platform.get(f"/datasets/{made['id']}")["state"]
    platform.finish(in_child=True)

    assert after_the_first != "ready"
    assert platform.get(f"/datasets/{made['id']}")["state"] == "ready"


def test_a_process_that_waits_for_something_else_does_not_stand_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "STANDSTILL_S", 0.2)
    waiting = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    standstill = processes.Standstill(waiting.pid)

    def lasts() -> bool:
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            time.sleep(0.05)
            if standstill.lasts():
                return True
        return False

    while_waiting = lasts()
    waiting.send_signal(signal.SIGSTOP)
    while_stopped = lasts()
    waiting.kill()
    waiting.wait()

    assert (while_waiting, while_stopped) == (False, True)
