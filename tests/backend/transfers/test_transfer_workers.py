"""What befalls the worker of a transfer, or the database, costs no more of the transfer than it must."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.transfers import service
from trellis_api.transfers.models import Transfer
from trellis_api.transfers.schemas import TransferProgress
from trellis_contracts.transfers import PROGRESS_FILE, PUSH_ORDER_FILE, PushedFile, PushOrder
from trellis_testing.model_folders import write_model_folder
from trellis_testing.stand_in_hub import StandInHub
from trellis_workers.core import processes
from trellis_workers.data.tidy import tidy
from trellis_workers.transfers import run

#: The answer of a child that has done its work.
DONE = 'print(\'{"commit": "c1"}\')'
WAIT = "import time; time.sleep(60)"


@pytest.fixture
def begin(client: TestClient, settings: Settings) -> Callable[[], str]:
    """Queue a push; its id."""
    write_model_folder(settings.data_root / "models" / "bot")
    source = {"kind": "local", "path": "models/bot"}
    model = client.post("/api/v1/models", json={"name": "bot 1", "source": source}).json()

    def begin() -> str:
        answer = client.post(f"/api/v1/models/{model['id']}/push", json={"repo_id": "team/tiny"})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    return begin


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have the next children run these programs instead of pushing; an error is raised in the worker."""
    monkeypatch.setattr(run, "_LOOK_S", 0.1)

    def act(*programs: str | Exception) -> None:
        waiting = iter(programs)

        def prepare(*parts: Any) -> run._Work:
            parts[-1].mkdir(parents=True, exist_ok=True)
            program = next(waiting)
            if isinstance(program, Exception):
                raise program
            return run._Work([sys.executable, "-I", "-c", program], {})

        monkeypatch.setattr(run, "_prepare", prepare)

    return act


def row(database: Database, transfer_id: str) -> Transfer:
    with database.read() as session:
        found = service.get_transfer(session, transfer_id=transfer_id)
        session.expunge(found)
    return found


def lose_worker(database: Database, transfer_id: str) -> Transfer | None:
    """Let a minute pass without a sign of life, and another worker come."""
    with database.write() as session:
        found = service.get_transfer(session, transfer_id=transfer_id)
        if found.state == "running":
            found.touched_at = utc_now() - timedelta(minutes=5)
            session.add(found)
            session.flush()
        claimed = service.claim(session, transfer_id=transfer_id)
        if claimed is not None:
            session.expunge(claimed)
    return claimed


def advance(database: Database, transfer: Transfer | None, done_bytes: int, folder: Path) -> int:
    """Have the transfer's child say how far it is; the losses that count afterwards."""
    assert transfer is not None
    folder.mkdir(parents=True, exist_ok=True)
    progress = TransferProgress(done_bytes=done_bytes).model_dump_json()
    (folder / PROGRESS_FILE).write_text(progress, "utf-8")
    run._note(database, transfer, folder)
    return row(database, transfer.id).losses


def test_a_database_that_is_away_for_a_moment_costs_nothing(
    settings: Settings,
    database: Database,
    begin: Callable[[], str],
    act: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transfer_id = begin()
    act(DONE)
    outages, touch = iter([True, True]), service.touch

    def touch_or_fail(*parts: Any, **named: Any) -> bool:
        if next(outages, False):
            raise OperationalError("update", {}, Exception("database is locked"))
        return touch(*parts, **named)

    monkeypatch.setattr(service, "touch", touch_or_fail)

    assert run.run_waiting(settings, database) == [transfer_id]

    found = row(database, transfer_id)
    assert (found.state, found.attempt, found.losses) == ("succeeded", 1, 0)
    assert next(outages, None) is None


def test_what_libraries_print_before_the_result_is_no_part_of_it(
    settings: Settings, database: Database, begin: Callable[[], str], act: Callable[..., None]
) -> None:
    transfer_id = begin()
    act(f"print('a notice of a library'); {DONE}")

    run.run_waiting(settings, database)

    found = row(database, transfer_id)
    assert (found.state, (found.result or {}).get("commit")) == ("succeeded", "c1")


def test_what_cannot_be_read_or_was_not_foreseen_fails_and_the_next_one_is_carried_out(
    settings: Settings,
    database: Database,
    begin: Callable[[], str],
    act: Callable[..., None],
) -> None:
    unread, unforeseen, third = begin(), begin(), begin()
    act("print('no result')", RuntimeError("out of the blue"), DONE)

    assert run.run_waiting(settings, database) == [unread, unforeseen, third]

    found = [row(database, each) for each in (unread, unforeseen, third)]
    assert [each.state for each in found] == ["failed", "failed", "succeeded"]
    assert (found[0].reason or "").startswith("The transfer finished, but its result cannot be read: ")
    assert found[1].reason == "Unexpected worker error: RuntimeError: out of the blue"


def test_a_worker_that_leaves_lets_its_transfer_wait_without_a_loss(
    settings: Settings, database: Database, begin: Callable[[], str], act: Callable[..., None]
) -> None:
    first, second = begin(), begin()
    act(WAIT)
    looks = iter([False, False, False])

    assert run.run_waiting(settings, database, lambda: next(looks, True)) == []

    found = row(database, first)
    assert (found.state, found.attempt, found.losses, found.reason) == ("queued", 1, 0, None)
    assert (row(database, second).state, row(database, second).attempt) == ("queued", 0)
    act(DONE, DONE)
    assert run.run_waiting(settings, database) == [first, second]
    assert (row(database, first).state, row(database, first).losses) == ("succeeded", 0)


def test_a_child_that_is_ended_with_its_worker_has_not_failed(
    settings: Settings, database: Database, begin: Callable[[], str], act: Callable[..., None]
) -> None:
    transfer_id = begin()
    act("import os; os.kill(os.getpid(), 15)")
    looks = iter([False, False])  # the child dies before the worker hears of it

    run.run_waiting(settings, database, lambda: next(looks, True))

    assert row(database, transfer_id).state == "queued"


def test_losses_begin_anew_where_an_attempt_comes_further_than_the_one_before(
    settings: Settings, database: Database, begin: Callable[[], str]
) -> None:
    transfer_id = begin()
    folder = service.transfer_folder(settings, transfer_id)

    advance(database, lose_worker(database, transfer_id), 100, folder)
    once = lose_worker(database, transfer_id)
    # An export begins at the start: it has to pass what the one before has reached.
    losses = [advance(database, once, done, folder) for done in (0, 50, 100, 101)]
    assert losses == [1, 1, 1, 0]

    # Dying at the same place again and again, it is given up as ever.
    claims = []
    for _ in range(3):
        claimed = lose_worker(database, transfer_id)
        claims.append(claimed is not None)
        if claimed is not None:
            advance(database, claimed, 60, folder)
            advance(database, claimed, 101, folder)
    assert claims == [True, True, False]
    assert row(database, transfer_id).state == "failed"


def test_a_push_whose_worker_is_gone_commits_nothing(tmp_path: Path) -> None:
    arrived, may_go_on = threading.Event(), threading.Event()
    hub = StandInHub({})

    def hold(_size: int) -> None:
        arrived.set()
        may_go_on.wait(20)

    hub.before_upload = hold
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(os.urandom(1000))
    order = PushOrder(
        repo_id="team/tiny",
        revision="main",
        private=True,
        message="m",
        files=[PushedFile(name=weights.name, path=str(weights))],
        card="c",
    )
    (tmp_path / PUSH_ORDER_FILE).write_text(order.model_dump_json(), "utf-8")
    child = [sys.executable, "-m", "trellis_workers.transfers.push", str(tmp_path)]
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": "t", "HF_HUB_DISABLE_XET": "1"}
    worker = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run({child!r})"],
        stdout=subprocess.PIPE,
        env=environment,
    )
    try:
        assert arrived.wait(30)

        worker.kill()

        worker.communicate(timeout=5)  # the pipe ends when the last process that has it does
        may_go_on.set()
        assert hub.committed == []
    finally:
        may_go_on.set()
        hub.close()


def test_a_transfer_that_fails_leaves_no_half_file(
    settings: Settings, database: Database, begin: Callable[[], str], act: Callable[..., None]
) -> None:
    transfer_id = begin()
    act("open('m.gguf.part', 'w').write('half'); raise SystemExit('it broke')")

    run.run_waiting(settings, database)

    assert row(database, transfer_id).reason == "The transfer failed with exit code 1: it broke"
    left = {path.name for path in service.transfer_folder(settings, transfer_id).iterdir()}
    assert left == {"result.json", "transfer.log"}


def test_tidying_removes_what_nobody_needs_and_nothing_else(
    settings: Settings, database: Database, begin: Callable[[], str]
) -> None:
    states = ("queued", "running", "succeeded", "failed", "cancelled")
    ids = {state: begin() for state in states}
    with database.write() as session:
        for state, transfer_id in ids.items():
            service.get_transfer(session, transfer_id=transfer_id).state = state
    folders = {state: service.transfer_folder(settings, transfer_id) for state, transfer_id in ids.items()}
    folders["deleted"] = service.transfer_folder(settings, "trf_deleted")
    for folder in folders.values():
        folder.mkdir(parents=True)
        (folder / "m.gguf.part").touch()
        (folder / "transfer.log").touch()

    tidy(settings, database)

    left = {state: sorted(path.name for path in folder.glob("*")) for state, folder in folders.items()}
    everything = ["m.gguf.part", "transfer.log"]
    assert left == {
        "queued": everything,
        "running": everything,
        "succeeded": everything,
        "failed": ["transfer.log"],
        "cancelled": [],
        "deleted": [],
    }
    assert not folders["cancelled"].exists()
    assert not folders["deleted"].exists()


@pytest.mark.timeout(60)
def test_a_child_that_is_stopped_is_ended_and_leaves_the_lane_to_others(
    settings: Settings,
    database: Database,
    begin: Callable[[], str],
    act: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "STANDSTILL_S", 0.5)
    monkeypatch.setattr(run, "_END_S", 0.1)
    transfer_id = begin()
    act("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")

    assert run.run_waiting(settings, database) == [transfer_id]

    found = row(database, transfer_id)
    assert found.state == "failed"
    assert "stood still" in (found.reason or "")
