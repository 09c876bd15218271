"""The subreaper: how an engine ends is how its parent sees it end, and nothing of it stays behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from trellis_testing.waiting import wait_until
from trellis_train.supervise.child import EngineProcess

pytestmark = pytest.mark.faults


def start(script: str, folder: Path) -> EngineProcess:
    return EngineProcess([sys.executable, "-S", "-c", script], environment=dict(os.environ), folder=folder)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


#: An engine with a grandchild in a session of its own: what torchrun's workers look like.
WITH_GRANDCHILD = """
import subprocess, sys, pathlib, os, time
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
os.rename("pids", "ready")
"""


def read_pids(folder: Path) -> list[int]:
    wait_until(lambda: (folder / "ready").exists(), 10, "the engine is ready", pause_s=0.01)
    return [int(pid) for pid in (folder / "ready").read_text().split()]


@pytest.mark.parametrize("code", [0, 1, 75])
def test_the_exit_code_comes_through(code: int, tmp_path: Path) -> None:
    assert start(f"raise SystemExit({code})", tmp_path).wait(10) == code


def test_a_command_that_does_not_exist_fails(tmp_path: Path) -> None:
    engine = EngineProcess(["/no/such/command"], environment=dict(os.environ), folder=tmp_path)

    assert engine.wait(10) == 127


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_signal_comes_through(number: signal.Signals, tmp_path: Path) -> None:
    assert start(f"import os; os.kill(os.getpid(), {int(number)})", tmp_path).wait(10) == -number


def test_an_engine_can_leave_gracefully(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
        "pathlib.Path('ready').touch()\ntime.sleep(60)"
    )
    engine = start(script, tmp_path)
    wait_until(lambda: (tmp_path / "ready").exists(), 10, "the engine is ready", pause_s=0.01)

    engine.terminate()

    assert engine.wait(10) == 75


def test_what_an_engine_leaves_behind_is_killed(tmp_path: Path) -> None:
    engine = start(WITH_GRANDCHILD, tmp_path)

    exit_code = engine.wait(10)

    assert exit_code == 0
    assert not [pid for pid in read_pids(tmp_path) if is_alive(pid)]


def test_killing_an_engine_kills_all_its_processes(tmp_path: Path) -> None:
    engine = start(WITH_GRANDCHILD + "time.sleep(600)", tmp_path)
    pids = read_pids(tmp_path)

    engine.kill()

    assert engine.wait(10) == -signal.SIGKILL
    assert not [pid for pid in pids if is_alive(pid)]


def test_nothing_outlives_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys, time\nfrom pathlib import Path\n"
            "from trellis_train.supervise.child import EngineProcess\n"
            f"EngineProcess([sys.executable, '-S', '-c', {WITH_GRANDCHILD + 'time.sleep(600)'!r}],"
            f" environment=dict(os.environ), folder=Path({str(tmp_path)!r}))\ntime.sleep(600)",
        ]
    )
    pids = read_pids(tmp_path)

    parent.kill()
    parent.wait()

    wait_until(lambda: not [pid for pid in pids if is_alive(pid)], 5, f"{pids} end", pause_s=0.01)


def test_an_engine_does_not_outlive_its_leash(tmp_path: Path) -> None:
    engine = start(WITH_GRANDCHILD + "time.sleep(600)", tmp_path)
    engine_pid, orphan_pid = read_pids(tmp_path)

    os.kill(engine.pid, signal.SIGKILL)

    wait_until(lambda: not is_alive(engine_pid), 5, "the engine ends", pause_s=0.01)
    if is_alive(orphan_pid):
        os.kill(orphan_pid, signal.SIGKILL)
