"""Services start once, answer, and end exactly; nobody else's process is ever touched."""

import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from trellis_cli.errors import Problem
from trellis_cli.services.api import ApiService
from trellis_cli.services.ports import wait_until_free
from trellis_cli.services.process import ProcessIdentity, wait_until_gone, write_record
from trellis_cli.services.supervisor import Supervisor

MakeSupervisor = Callable[..., Supervisor]


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is none of ours."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"]) as process:
        yield process
        process.kill()


def test_redis_starts_answers_and_ends(make_supervisor: MakeSupervisor, tmp_path: Path) -> None:
    supervisor = make_supervisor(tmp_path)

    supervisor.up()
    (running,) = supervisor.status()
    ended = supervisor.down()
    (stopped,) = supervisor.status()

    assert running.state == "running"
    assert ended == ["redis"]
    assert stopped.state == "stopped"
    assert running.pid is not None
    assert ProcessIdentity.of(running.pid) is None


def test_a_second_start_leaves_what_runs_alone(make_supervisor: MakeSupervisor, tmp_path: Path) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    (first,) = supervisor.status()

    supervisor.up()

    (second,) = supervisor.status()
    assert second.pid == first.pid


def test_a_killed_service_is_started_again_on_the_same_port(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    (before,) = supervisor.status()
    assert before.pid is not None
    identity = ProcessIdentity.of(before.pid)
    assert identity is not None
    identity.send(9)
    wait_until_gone([identity], 5)

    supervisor.up()

    (after,) = supervisor.status()
    assert after.pid != before.pid
    assert after.detail == before.detail


def test_a_port_that_a_dying_process_still_holds_is_waited_for(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    (before,) = supervisor.status()
    port = supervisor.platform.state.redis_port
    assert before.pid is not None
    assert port is not None
    identity = ProcessIdentity.of(before.pid)
    assert identity is not None
    identity.send(9)
    assert wait_until_free([port], 10)
    # Stands in for the threads of a killed process that have not left the kernel yet.
    lingering = socket.create_server(("127.0.0.1", port))
    release = threading.Timer(0.7, lingering.close)
    release.start()

    supervisor.up()

    release.join()
    (after,) = supervisor.status()
    assert after.detail == before.detail


def test_redis_refuses_whoever_has_no_password(make_supervisor: MakeSupervisor, tmp_path: Path) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()
    port = supervisor.platform.state.redis_port
    assert port is not None

    client = redis.Redis(host="127.0.0.1", port=port)

    with pytest.raises(redis.AuthenticationError):
        client.ping()


def test_passwords_are_readable_by_their_owner_alone(make_supervisor: MakeSupervisor, tmp_path: Path) -> None:
    supervisor = make_supervisor(tmp_path)

    supervisor.up()

    for path in (supervisor.platform.layout.state_path, tmp_path / "redis" / "redis.conf"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_path_with_spaces_and_other_letters_works(make_supervisor: MakeSupervisor, tmp_path: Path) -> None:
    supervisor = make_supervisor(tmp_path / "a folder 数据")

    supervisor.up()

    (status,) = supervisor.status()
    assert status.is_healthy


def test_two_platforms_run_side_by_side(make_supervisor: MakeSupervisor, tmp_path: Path) -> None:
    first = make_supervisor(tmp_path / "one")
    second = make_supervisor(tmp_path / "two")
    first.up()
    second.up()

    first.down()

    assert [each.state for each in first.status()] == ["stopped"]
    assert [each.state for each in second.status()] == ["running"]


def test_an_occupied_port_names_its_holder_and_the_way_out(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        supervisor = make_supervisor(tmp_path, ApiService, port=port)

        with pytest.raises(Problem) as caught:
            supervisor.up()

    assert f"port {port} is in use by " in caught.value.message
    assert "(pid " in caught.value.message
    assert caught.value.hint is not None
    assert "--port" in caught.value.hint


def test_ending_kills_what_ignores_the_request_and_what_detached_itself(
    make_supervisor: MakeSupervisor, tmp_path: Path, stubborn: type
) -> None:
    supervisor = make_supervisor(tmp_path, stubborn)
    supervisor.up()
    (status,) = supervisor.status()
    child = int((tmp_path / "run" / "child").read_text())
    assert status.pid is not None
    assert ProcessIdentity.of(child) is not None

    supervisor.down()

    assert ProcessIdentity.of(status.pid) is None
    assert ProcessIdentity.of(child) is None


def test_what_a_killed_leader_left_behind_is_ended_before_the_next_start(
    make_supervisor: MakeSupervisor, tmp_path: Path, stubborn: type
) -> None:
    supervisor = make_supervisor(tmp_path, stubborn)
    supervisor.up()
    (status,) = supervisor.status()
    orphan = int((tmp_path / "run" / "child").read_text())
    assert status.pid is not None
    leader = ProcessIdentity.of(status.pid)
    assert leader is not None
    leader.send(9)
    wait_until_gone([leader], 5)

    supervisor.up()

    assert ProcessIdentity.of(orphan) is None


def test_a_reused_pid_is_neither_taken_for_ours_nor_ended(
    make_supervisor: MakeSupervisor, tmp_path: Path, stranger: "subprocess.Popen[bytes]"
) -> None:
    supervisor = make_supervisor(tmp_path)
    actual = ProcessIdentity.of(stranger.pid)
    assert actual is not None
    earlier = ProcessIdentity(actual.pid, actual.start_ticks - 100, actual.boot_id)
    write_record(supervisor.platform.layout.pid_path("redis"), earlier)

    (status,) = supervisor.status()
    supervisor.down()

    assert status.state == "stopped"
    assert stranger.poll() is None


def test_a_service_that_ends_while_starting_is_told_with_its_last_words(
    make_supervisor: MakeSupervisor, tmp_path: Path, broken: type
) -> None:
    supervisor = make_supervisor(tmp_path, broken)

    with pytest.raises(Problem, match="the cellar is flooded"):
        supervisor.up()


def test_a_service_that_ends_while_starting_is_started_again_as_often_as_it_may(
    make_supervisor: MakeSupervisor, tmp_path: Path, broken: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
import pathlib, sys, time
if not pathlib.Path("tried").exists():
    pathlib.Path("tried").touch()
    sys.exit("the cluster is too busy")
pathlib.Path("ready").touch()
time.sleep(300)
"""
    monkeypatch.setattr(broken, "start_attempts", 2)
    monkeypatch.setattr(broken, "command", lambda self: [sys.executable, "-c", program])
    monkeypatch.setattr(broken, "probe", lambda self: None if (tmp_path / "ready").exists() else "no")
    supervisor = make_supervisor(tmp_path, broken)

    supervisor.up()

    assert supervisor.status()[0].state == "running"


def test_a_data_root_that_cannot_be_written_is_a_clear_problem(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    # A file where the folder should be: root, who may write everywhere, is refused too.
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    supervisor = make_supervisor(blocked / "data")

    with pytest.raises(Problem, match="can't write to the data root"):
        supervisor.up()


def test_an_external_redis_is_used_and_left_running(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = make_supervisor(tmp_path / "owner")
    owner.up()
    monkeypatch.setenv("TRELLIS_REDIS_URL", owner.platform.redis_url)
    guest = make_supervisor(tmp_path / "guest")

    guest.up()
    (attached,) = guest.status()
    guest.down()

    assert attached.state == "external"
    assert [each.state for each in owner.status()] == ["running"]
