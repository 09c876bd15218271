"""Interpreters forked from one that has imported what they need: they behave as started ones do."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from trellis_testing.processes import is_running
from trellis_testing.waiting import wait_until
from trellis_train.cpu.forkserver.process import settings_of_loading

#: Starts the server, which imports these, and stays until its input ends.
HOST = """
import json, sys
from trellis_train.cpu.forkserver import server
print(json.dumps(server.start(sys.argv[1].split(","), sys.argv[2].split(",")).interpreter()), flush=True)
sys.stdin.read()
"""
#: Modules that an interpreter by itself would not import.
AT_ONCE, AT_FIRST_REQUEST = "colorsys", "wave"


#: With a locale, for which Python would otherwise add a variable, and what the server was loaded with.
def only() -> dict[str, str]:
    return {"LC_ALL": "C.UTF-8", "ONLY": "this", **settings_of_loading(os.environ)}


WHO = "import sys; print({'colorsys', 'wave'} <= sys.modules.keys())"


@dataclass
class Host:
    process: "subprocess.Popen[str]"
    interpreter: list[str]

    def run(self, *arguments: str, **options: object) -> "subprocess.CompletedProcess[str]":
        command = [*self.interpreter, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)

    def start(self, *arguments: str, **options: object) -> "subprocess.Popen[str]":
        return subprocess.Popen([*self.interpreter, *arguments], stdout=subprocess.PIPE, text=True, **options)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with asked_host() as host:
        yield host


def start_host(*modules: str) -> "subprocess.Popen[str]":
    names = modules or (AT_ONCE, AT_FIRST_REQUEST)
    return subprocess.Popen(
        [sys.executable, "-c", HOST, *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_code_finds_what_was_imported(host: Host) -> None:
    done = host.run("-c", WHO)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_a_script_has_its_arguments_folder_environment_and_input(host: Host, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("name = 'found'")
    script = tmp_path / "script.py"
    script.write_text(
        "import beside, json, os, sys\n"
        "if __name__ == '__main__':\n"
        "    said = [sys.argv, os.getcwd(), sorted(os.environ), beside.name, sys.stdin.read()]\n"
        "    print(json.dumps(said)); print('aside', file=sys.stderr)\n"
    )
    done = host.run("-u", str(script), "--one=two words", cwd="/", env=only(), input="typed")
    assert json.loads(done.stdout) == [
        [str(script), "--one=two words"],
        "/",
        sorted(only()),
        "found",
        "typed",
    ]
    assert done.stderr == "aside\n"


@pytest.mark.parametrize(
    ("code", "left", "says"),
    [
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit('why')", 1, "why\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os; os._exit(9)", 9, ""),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM, ""),
        ("import os; os.kill(os.getpid(), 6)", -signal.SIGABRT, ""),
    ],
)
def test_it_leaves_as_its_process_leaves(host: Host, code: str, left: int, says: str) -> None:
    done = host.run("-c", code)
    assert done.returncode == left
    assert done.stderr.endswith(says)


def test_its_end_waits_for_threads_and_then_does_what_was_registered(host: Host) -> None:
    code = (
        "import atexit, threading, time\n"
        "atexit.register(print, 'last')\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), print('thread'))).start()\n"
        "print('main')"
    )
    assert host.run("-c", code).stdout == "main\nthread\nlast\n"


def test_open_descriptors_keep_their_numbers(host: Host) -> None:
    reading, writing = os.pipe()
    try:
        done = host.run("-c", f"import os; os.write({writing}, b'through')", pass_fds=[writing])
        assert (done.returncode, os.read(reading, 100)) == (0, b"through")
    finally:
        os.close(reading)
        os.close(writing)


def test_nothing_of_the_servers_own_stays_open(host: Host) -> None:
    code = "import os; print(sorted(int(name) for name in os.listdir('/proc/self/fd')))"
    # 3 is the one that lists them.
    assert json.loads(host.run("-c", code).stdout) == [0, 1, 2, 3]


def test_random_numbers_are_its_own(host: Host) -> None:
    code = "import random, tempfile; print(random.random(), tempfile.mktemp())"
    assert len({host.run("-c", code).stdout for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("name", "other"), [("OMP_NUM_THREADS", "17"), ("PYTHONHASHSEED", "3"), ("LD_PRELOAD", "/none.so")]
)
def test_settings_that_are_read_at_the_start_ask_for_an_interpreter_of_its_own(
    host: Host, name: str, other: str
) -> None:
    done = host.run("-c", WHO, env={**os.environ, name: other})
    assert (done.stdout, done.returncode) == ("False\n", 0)
    assert name in done.stderr


def test_a_module_is_run_by_an_interpreter_of_its_own(host: Host) -> None:
    done = host.run("-m", "json.tool", "--help")
    assert done.returncode == 0
    assert "no script and no code" in done.stderr


def test_what_it_spawns_is_forked_too(host: Host, tmp_path: Path) -> None:
    script = tmp_path / "spawning.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "def work(answers):\n"
        "    answers.put('wave' in sys.modules)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    answers = context.Queue()\n"
        "    child = context.Process(target=work, args=[answers])\n"
        "    child.start(); print(answers.get()); child.join(); print(child.exitcode)\n"
    )
    done = host.run(str(script))
    assert (done.stdout, done.stderr) == ("True\n0\n", "")


def test_a_signal_goes_through_to_the_process(host: Host) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(21))\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    with host.start("-c", code) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        client.send_signal(signal.SIGTERM)
        assert client.wait(30) == 21


def test_a_signal_waits_for_the_process_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with asked_host(AT_ONCE, "slow") as host, host.start("-c", "import time; time.sleep(60)") as client:
        wait_until(lambda: "SigBlk:\t0000000000000000" not in read_status(client.pid), 10, "signals wait")
        client.send_signal(signal.SIGTERM)
        assert client.wait(30) == -signal.SIGTERM


def read_status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def test_a_process_dies_with_the_one_that_stands_for_it(host: Host) -> None:
    with host.start("-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)") as client:
        assert client.stdout is not None
        process_of_it = psutil.Process(int(client.stdout.readline()))
        assert process_of_it.pid != client.pid
        client.kill()
        wait_until(lambda: not is_running(process_of_it), 10, "it is dead")


def test_all_die_with_the_host() -> None:
    with start_host() as process:
        assert process.stdout is not None
        host = Host(process, json.loads(process.stdout.readline()))
        with host.start("-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)") as client:
            assert client.stdout is not None
            process_of_it = psutil.Process(int(client.stdout.readline()))
            process.kill()
            wait_until(lambda: not is_running(process_of_it), 10, "it is dead")
            assert client.wait(30) == -signal.SIGKILL


def test_without_a_server_the_interpreter_takes_its_place() -> None:
    with start_host() as process:
        assert process.stdout is not None
        host = Host(process, json.loads(process.stdout.readline()))
        process.kill()
        process.wait()
        time.sleep(0.2)  # the server is killed by the kernel as its host dies
        done = host.run("-c", WHO)
        assert (done.stdout, done.returncode) == ("False\n", 0)
        assert "fork server" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be someone else")
def test_someone_else_is_not_served(host: Host) -> None:
    asking = (
        "import socket, sys; connection = socket.socket(socket.AF_UNIX)\n"
        "connection.connect('\\0' + sys.argv[1]); print(connection.recv(100))"
    )
    address = host.interpreter[-1]
    command = ["/usr/bin/env", "python3", "-c", asking, address]
    done = subprocess.run(command, user=65534, capture_output=True, text=True, timeout=30, cwd="/")
    assert done.stdout == "b''\n", done.stderr


def test_of_a_process_with_threads_nothing_is_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ticking.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=[60], name='ticker', daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with asked_host(AT_ONCE, "ticking") as host:
        done = host.run("-c", WHO)
    assert (done.stdout, done.returncode) == ("False\n", 0)
    assert "has started threads: MainThread, ticker" in done.stderr


def test_what_cannot_be_imported_leaves_each_to_itself() -> None:
    with asked_host(AT_ONCE, "no_such_module") as host:
        done = host.run("-c", WHO)
    assert (done.stdout, done.returncode) == ("False\n", 0)
    assert "started without the fork server" in done.stderr


def test_rays_variables_of_the_first_request_are_there_when_its_core_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "core.py").write_text("import os\njob = os.environ.get('RAY_JOB_ID')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = "import core; print(core.job)"
    with asked_host(AT_ONCE, "core") as host:
        first = host.run("-c", code, env={**os.environ, "RAY_JOB_ID": "02000000"})
        again = host.run("-c", code, env={**os.environ, "RAY_JOB_ID": "02000000"})
        other = host.run("-c", code, env={**os.environ, "RAY_JOB_ID": "03000000"})
    assert (first.stdout, again.stdout, other.stdout) == ("02000000\n", "02000000\n", "03000000\n")
    assert (first.stderr, again.stderr) == ("", "")
    assert "RAY_JOB_ID" in other.stderr


def test_forked_processes_draw_ids_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's generator is seeded once in a process: drawn from before the fork, all would go on alike."""
    (tmp_path / "actors.py").write_text("import ray\n@ray.remote\nclass Storage:\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = "import sys, ray; assert 'actors' in sys.modules; print(ray.ObjectRef.from_random().hex())"
    with asked_host(AT_ONCE, "actors") as host:
        drawn = [host.run("-c", code) for _ in range(3)]
    assert [(done.returncode, done.stderr) for done in drawn] == [(0, "")] * 3
    assert len({done.stdout for done in drawn}) == 3


def test_libraries_to_load_first_are_no_obstacle_once_they_are_loaded(host: Host) -> None:
    mapped = {
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line
    }
    done = host.run("-c", WHO, env={**os.environ, "LD_PRELOAD": mapped.pop()})
    assert (done.stdout, done.stderr) == ("True\n", "")


@contextlib.contextmanager
def asked_host(*modules: str) -> Iterator[Host]:
    with start_host(*modules) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield Host(process, json.loads(process.stdout.readline()))
        process.stdin.close()
