"""Looking at processes that the tests start and end."""

import subprocess
import sys
from pathlib import Path

import psutil
from trellis_tools.chaos.processes import is_running
from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE


def list_children(module: str) -> list[int]:
    """List the pids of this process's children that run a module."""
    children = filter(is_running, psutil.Process().children())
    return [each.pid for each in children if module in each.cmdline()]


def list_attempt(attempt_dir: Path) -> list[int]:
    """List every live process of an attempt by its environment, including children of dead parents."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(ATTEMPT_DIR_VARIABLE) == str(attempt_dir) and is_running(process):
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended, or it is somebody else's
    return sorted(found)


def read_stacks(attempt_dir: Path) -> str:
    """Dump the stacks of every process of an attempt, to find out why a run does not end."""
    profiler = str(Path(sys.executable).with_name("py-spy"))
    told = []
    for pid in list_attempt(attempt_dir):
        done = subprocess.run(
            [profiler, "dump", "--pid", str(pid)], capture_output=True, text=True, timeout=60, check=False
        )
        told.append(done.stdout + done.stderr)
    return "\n".join(told)
