"""What a service leaves when it dies: processes that hold its ports, and services that know its address."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_cli.errors import Problem
from trellis_cli.services import service as services
from trellis_cli.services import watch as watching
from trellis_cli.services.api import ApiService
from trellis_cli.services.platform import load_platform
from trellis_cli.services.process import ProcessIdentity, in_session, wait_until_gone
from trellis_cli.services.redis import RedisService
from trellis_cli.services.service import Service
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.services.watch import Watch
from trellis_cli.services.worker import WorkerService
from trellis_testing.waiting import wait_until

MakeSupervisor = Callable[..., Supervisor]


class Cluster(Service):
    """Leaves a child in its session that bears no mark: agents of Ray write over their environment."""

    name = "cluster"
    is_told_addresses = False
    start_timeout_s = 10.0
    PROGRAM = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], env={})
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(300)
"""

    @property
    def child_file(self) -> Path:
        return self.platform.layout.run_dir / "child"

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.PROGRAM, str(self.child_file)]

    def probe(self) -> str | None:
        has_child = self.child_file.exists() and self.child_file.read_text().isdigit()
        return None if has_child else "has no child yet"


class Told(Service):
    """Notes an address that it was started with: the broker's."""

    name = "told"
    start_timeout_s = 10.0
    variable = "TRELLIS_REDIS_URL"
    PROGRAM = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(os.environ[sys.argv[2]])
time.sleep(300)
"""

    @property
    def note(self) -> Path:
        return self.platform.layout.run_dir / "note"

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.PROGRAM, str(self.note), self.variable]

    def probe(self) -> str | None:
        return None if self.note.exists() and self.note.read_text() else "has noted nothing"


class ToldOfApi(Told):
    """Notes where runs report."""

    variable = "TRELLIS_PUBLIC_URL"


class LightApi(ApiService):
    """Answers every question at the address of the API."""

    start_timeout_s = 10.0
    PROGRAM = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.PROGRAM, str(self.platform.settings.port)]


def kill_leader(service: Service) -> ProcessIdentity:
    identity = service.record
    assert identity is not None
    identity.send(9)
    wait_until_gone([identity], 5)
    return identity


def test_what_a_killed_leader_left_without_a_mark_is_ended_before_the_next_start(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    supervisor = make_supervisor(tmp_path, Cluster)
    supervisor.up()
    (service,) = supervisor.services
    orphan = int((tmp_path / "run" / "child").read_text())
    kill_leader(service)
    assert ProcessIdentity.of(orphan) is not None

    supervisor.up()

    assert ProcessIdentity.of(orphan) is None


def test_a_process_of_the_session_that_works_elsewhere_is_left_alone(tmp_path: Path) -> None:
    """Of a stranger that got the pid later: it is told from ours by where it works, and by when it began."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    child = [sys.executable, "-c", "import time; time.sleep(60)"]
    program = (
        f"import subprocess\nfor at in {[str(inside), str(outside)]!r}: subprocess.Popen({child!r}, cwd=at)"
    )
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as starter:
        leader = ProcessIdentity.of(starter.pid)
        assert leader is not None
    later = ProcessIdentity(leader.pid, leader.start_ticks + 10**6, leader.boot_id)
    earlier_boot = ProcessIdentity(leader.pid, leader.start_ticks, "another boot")

    found = [os.readlink(f"/proc/{each.pid}/cwd") for each in in_session(leader, inside)]
    everywhere = list(in_session(leader, tmp_path))
    strangers = [list(in_session(each, tmp_path)) for each in (later, earlier_boot)]

    for process in everywhere:
        process.send(9)
    assert found == [str(inside)]
    assert len(everywhere) == 2
    assert strangers == [[], []]


def test_services_that_know_an_address_are_started_again_when_it_changes(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, RedisService, Told)
    supervisor.up()
    broker, told = supervisor.services
    assert isinstance(told, Told)
    before, first_pid = told.note.read_text(), told.pid
    port = supervisor.platform.state.redis_port
    assert port is not None
    kill_leader(broker)
    monkeypatch.setattr(services, "_DYING_TIMEOUT_S", 0.2)

    def take() -> socket.socket | None:
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:  # until the killed one's last thread has gone
            return None

    stranger = wait_until(take, 10, "somebody else takes the port")
    assert stranger is not None
    with stranger:
        supervisor.up()

    assert supervisor.platform.redis_url != before
    wait_until(lambda: told.note.read_text() == supervisor.platform.redis_url, 10, "the new address is noted")
    assert told.pid != first_pid


def test_services_that_know_the_right_address_are_left_alone(
    make_supervisor: MakeSupervisor, tmp_path: Path
) -> None:
    supervisor = make_supervisor(tmp_path, RedisService, Told)
    supervisor.up()
    broker, told = supervisor.services
    first_pid = told.pid
    kill_leader(broker)

    supervisor.up()

    assert told.pid == first_pid


def test_an_api_that_died_comes_back_on_another_port_and_all_others_hear_of_it(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_PROBE_INTERVAL_S", 0.0)
    supervisor = make_supervisor(tmp_path, LightApi, ToldOfApi)
    supervisor.up()
    watch = Watch(supervisor)
    watch.look()
    kill_leader(supervisor.services[0])

    moved = make_supervisor(tmp_path, LightApi, ToldOfApi)
    moved.up()
    api, told = moved.services
    started, problems = api.pid, [status.detail for status in moved.status() if not status.is_healthy]
    watch.look()
    (watched, _) = watch.watched
    failed_probes = watched.failed_probes
    kill_leader(api)
    watch.look()
    wait_until(lambda: api.probe() is None, 10, "it is back on the new port")

    assert isinstance(told, ToldOfApi)
    assert told.note.read_text() == moved.platform.url
    assert supervisor.platform.url == moved.platform.url
    assert (problems, failed_probes) == ([], 0)
    assert api.pid not in (None, started)


def test_an_api_that_runs_is_not_moved(
    make_supervisor: MakeSupervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, LightApi)
    supervisor.up()
    url, port = supervisor.platform.url, supervisor.platform.settings.port

    with pytest.raises(Problem, match=f"the platform is already running on {url}"):
        make_supervisor(tmp_path, LightApi).up()
    monkeypatch.setenv("TRELLIS_HOST", "127.0.0.2")
    with pytest.raises(Problem, match=f"the platform is already running on {url}"):
        make_supervisor(tmp_path, LightApi, port=port).up()


def test_temporary_files_of_a_killed_worker_are_gone_when_it_starts_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRELLIS_DATA_ROOT", str(tmp_path))
    service = WorkerService(load_platform())
    service.prepare()
    folder = Path(service.environment()["TMPDIR"])
    (folder / "pymp-abc").mkdir()

    service.prepare()

    assert folder.is_relative_to(tmp_path)
    assert list(folder.iterdir()) == []
