"""The processes of a platform's services and runs: finding them, stopping them, and seeing what is left."""

import contextlib
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

ENTRYPOINT = "trellis_train.entrypoint"
#: Processes of Ray that belong to no job.
RESTING = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")
_BUSY = ("ray::", "VLLM")
_SUBREAPER = "subreaper.py"


def is_running(process: psutil.Process) -> bool:
    """Return whether it is running; a zombie, for which nobody waits, is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def list_tree(pid: int | None) -> list[psutil.Process]:
    """List a process and all its descendants; empty for a service that is not running."""
    if pid is None:
        return []
    try:
        leader = psutil.Process(pid)
        return [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def signal_all(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes; some may have ended with the one that started them."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def kill_all(processes: Iterable[psutil.Process], timeout_s: float = 10.0) -> list[psutil.Process]:
    """Kill processes (SIGKILL), wait until they are gone, and return those that still run."""
    doomed = list(processes)
    signal_all(doomed, signal.SIGKILL)
    deadline = time.monotonic() + timeout_s
    while (left := [each for each in doomed if is_running(each)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


class RunFinder:
    """Finds the supervising processes of all runs below a data root; looks at each process once."""

    def __init__(self, data_root: Path) -> None:
        self.data_root = data_root
        self._spec = re.compile(re.escape(str(data_root)) + r"/jobs/([^/]+)/attempt-\d+/spec\.json$")
        self._known: dict[int, tuple[psutil.Process, str | None]] = {}

    def find(self) -> dict[str, psutil.Process]:
        """Find the process of each job that has one."""
        found: dict[str, psutil.Process] = {}
        pids = set(psutil.pids())
        self._known = {
            pid: known for pid, known in self._known.items() if pid in pids and is_running(known[0])
        }
        for pid in pids - set(self._known):
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                command = process.cmdline()
                # Between fork and exec a process still shows its parent's command: it is looked at again.
                if command and time.time() - process.create_time() > 1.0:
                    self._known[pid] = (process, self._job_of(command))
                elif command and (job := self._job_of(command)):
                    found[job] = process
        for process, known_job in self._known.values():
            if known_job is not None:
                found[known_job] = process
        return found

    def _job_of(self, command: list[str]) -> str | None:
        if ENTRYPOINT not in command or _SUBREAPER in " ".join(command):
            return None
        match = self._spec.search(command[-1])
        return match.group(1) if match else None


def list_remains(candidates: Iterable[int], needles: Iterable[str], *, is_cluster: bool = False) -> list[str]:
    """List the processes that contain a needle in their command or environment, one line each.

    Of a cluster's own processes also those that are busy: some write their title over their environment.
    """
    sought = list(needles)
    found = []
    for pid in sorted(set(candidates)):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            command = " ".join(process.cmdline())
            if command.startswith(RESTING) or not is_running(process):
                continue
            texts = [command, *process.environ().values()]
            is_named = any(needle in text for text in texts for needle in sought)
            if is_named or (is_cluster and command.startswith(_BUSY)):
                found.append(f"{pid} {command[:150]}")
    return found
