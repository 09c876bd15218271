"""The supervisor: what dies or hangs is started again, what dies too often is given up, and ``down`` wins."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from trellis_cli.services import restarts
from trellis_cli.services import supervisor as supervising
from trellis_cli.services import watch as watching
from trellis_cli.services.process import ProcessIdentity, wait_until_gone
from trellis_cli.services.restarts import MOST_DEATHS
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.watch import Watch
from trellis_contracts.supervision import SUPERVISION_FILE, SupervisedService, Supervision
from trellis_testing.waiting import wait_until

MakeSupervisor = Callable[..., Supervisor]


@pytest.fixture(autouse=True)
def _probe_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PROBE_INTERVAL_S", 0.0)


def kill(supervisor: Supervisor) -> int:
    """SIGKILL the one service; its pid."""
    (service,) = supervisor.services
    identity = service.record
    assert identity is not None
    identity.send(signal.SIGKILL)
    wait_until_gone([identity], 5)
    return identity.pid


def read(supervisor: Supervisor) -> SupervisedService:
    path = supervisor.platform.layout.data_root / SUPERVISION_FILE
    (service,) = Supervision.model_validate_json(path.read_bytes()).services
    return service


def test_a_killed_service_is_started_again_and_told_of(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    watch = Watch(supervisor)
    watch.look()
    first_pid = kill(supervisor)

    watch.look()
    wait_until(lambda: supervisor.status()[0].is_healthy, 20, "the service answers again")
    watch.look()

    told = read(supervisor)
    assert supervisor.services[0].pid != first_pid
    assert (told.name, told.restarts, told.state) == ("redis", 1, "running")
    assert told.reason is not None
    assert told.reason.startswith("it exited")
    assert told.died_at == pytest.approx(time.time(), abs=60)


def test_a_service_that_was_stopped_by_a_signal_is_replaced(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path)
    (service,) = supervisor.services
    monkeypatch.setattr(service, "hangs_after_s", 1.5)
    monkeypatch.setattr(service, "grace_s", 0.2)
    supervisor.up()
    watch = Watch(supervisor)
    watch.look()
    hung = service.record
    assert hung is not None
    hung.send(signal.SIGSTOP)
    monkeypatch.setattr(watching, "_PROBE_INTERVAL_S", 0.5)

    def is_replaced() -> bool:
        watch.look()
        return service.record not in (None, hung)

    wait_until(is_replaced, 30, "another process serves")

    assert not hung.is_alive
    reason = read(supervisor).reason
    assert reason is not None
    assert "did not respond" in reason


def test_what_dies_again_and_again_is_given_up_loudly_until_it_is_started_by_hand(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis_cli.services.restarts._FIRST_PAUSE_S", 0.0)
    said: list[str] = []
    supervisor = make_supervisor(tmp_path)
    supervisor.say = said.append
    supervisor.up()
    watch = Watch(supervisor)
    for _ in range(MOST_DEATHS + 1):
        kill(supervisor)
        watch.look()

    watch.look()
    given_up, stays_dead = read(supervisor), supervisor.services[0].record is None
    supervisor.up()
    watch.look()

    assert (given_up.state, given_up.restarts, stays_dead) == ("given_up", MOST_DEATHS, True)
    assert any("GAVE UP" in line and "./init.sh" in line for line in said)
    assert read(supervisor).state == "running"


def test_nothing_is_started_while_somebody_else_starts_or_ends_services(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    watch = Watch(supervisor)
    kill(supervisor)

    with supervisor.platform.layout.locked():
        watch.look()
        during = supervisor.services[0].record
    watch.look()

    assert during is None
    assert supervisor.services[0].record is not None


def test_a_service_that_dies_while_the_disk_is_full_is_not_given_up(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "PUT_OFF_S", 0.0)
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    said: list[str] = []
    supervisor.say = said.append
    watch = Watch(supervisor)
    watch.look()
    kill(supervisor)

    def write_record(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(supervising, "write_record", write_record)
        for _ in range(MOST_DEATHS + 2):
            watch.look()
        told = read(supervisor)
    watch.look()
    wait_until(lambda: supervisor.status()[0].is_healthy, 20, "the service answers again")
    watch.look()

    assert (told.state, told.restarts) == ("waiting", 0)
    assert told.reason == "it cannot be started: No space left on device"
    assert (read(supervisor).state, read(supervisor).restarts) == ("running", 1)
    assert len([line for line in said if "cannot be started" in line]) == 1


def test_a_disk_that_stays_full_is_told_of_once(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "RENEW_INTERVAL_S", 0.0)
    supervisor = make_supervisor(tmp_path)
    said: list[str] = []
    supervisor.say = said.append
    watch = Watch(supervisor)
    draft = (supervisor.platform.layout.data_root / SUPERVISION_FILE).with_suffix(".tmp")
    draft.mkdir(parents=True)  # nothing can be written there

    for _ in range(3):
        watch._tell()
    draft.rmdir()
    watch._tell()

    assert [line for line in said if "cannot be written" in line] == said
    assert len(said) == 1
    assert read(supervisor).name == "redis"


PROGRAM = """
from trellis_cli.services import supervisor as supervising
from trellis_cli.services.platform import load_platform
from trellis_cli.services.redis import RedisService
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.watch import Watch
platform = load_platform()
supervisor = Supervisor(platform, print)
supervisor.services = [RedisService(platform)]
Watch(supervisor).run()
"""


@pytest.fixture
def run_watch(tmp_path: Path) -> Iterator[Callable[[], "subprocess.Popen[bytes]"]]:
    """The loop in a process of its own, for Redis alone."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "TRELLIS_DATA_ROOT": str(tmp_path)}
        started.append(subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_the_process_restarts_what_dies_and_down_ends_it_first(
    make_supervisor: MakeSupervisor, tmp_path: Path, run_watch: Callable[[], "subprocess.Popen[bytes]"]
) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    process = run_watch()
    wait_until(lambda: supervisor.watcher.record, 60, "the supervisor notes itself")
    second = run_watch()

    first_pid = kill(supervisor)
    wait_until(lambda: supervisor.services[0].pid not in (None, first_pid), 30, "Redis is started again")
    refused = second.wait(60)
    restarted = supervisor.services[0].record
    ended = supervisor.down()
    process.wait(30)
    time.sleep(1.5)  # time for a restart, if there were to be one

    assert refused != 0, "two supervisors watch one platform"
    assert ended == ["supervisor", "redis"]
    assert process.returncode == 0
    assert isinstance(restarted, ProcessIdentity)
    assert not restarted.is_alive
    assert supervisor.status()[0].state == "stopped"
    assert not (tmp_path / SUPERVISION_FILE).exists()


def test_systemd_is_told_after_each_round_that_the_watch_is_alive(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(make_supervisor(tmp_path))
    monkeypatch.setattr(watching.signal, "signal", lambda *_: None)
    monkeypatch.setattr(watch, "_alone", nullcontext)  # it would take this process for the supervisor
    monkeypatch.setattr(watch, "look", watch._stop.set)
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        address = f"{folder}/notify"  # short: addresses of sockets have 108 characters at most
        systemd.bind(address)
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", address)

        watch.run()

        assert systemd.recv(100) == b"WATCHDOG=1"
