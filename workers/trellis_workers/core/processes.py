"""End processes, with their whole group or after they were asked to, and notice those that stand still."""

import contextlib
import logging
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

#: Stopped, or waiting for a disk: a process that does nothing else for so long goes on by itself no more.
STANDSTILL_S = 120.0
_STOPPED = ("T", "D")
#: A killed process is gone at once, but for one that waits for a disk: that one is left to the kernel.
_KILLED_WITHIN_S = 10.0

log = logging.getLogger(__name__)


def end_group(process: "subprocess.Popen[Any]") -> None:
    """End a process that leads its session, with everything that it started; harmless where it is over."""
    # The group outlives its leader where that left something behind.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    _wait_for_killed(process)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def end_gently(process: "subprocess.Popen[Any]", grace_s: float) -> None:
    """Ask a process to end, and kill it where it does not within ``grace_s``; harmless where it is over."""
    process.terminate()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        _wait_for_killed(process)


def _wait_for_killed(process: "subprocess.Popen[Any]") -> None:
    try:
        process.wait(_KILLED_WITHIN_S)
    except subprocess.TimeoutExpired:
        log.warning("process %d was killed but does not end: it waits for a disk", process.pid)


class Standstill:
    """Notices that a process is stopped, or waits for a disk that does not answer; asked again and again.

    Waiting for the network or for other processes does not count: that may be work.
    """

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._used: list[str] = []
        self._since = time.monotonic()

    def lasts(self) -> bool:
        """Tell whether the process has been stuck for long, without any CPU time."""
        try:
            # State and times of all threads; what is before them is the name, with any characters.
            fields = self._stat.read_text().rpartition(")")[2].split()
        except OSError:
            fields = []  # it is over, or this system does not tell
        state, used = (fields[0], fields[11:13]) if fields else ("", [])
        if state not in _STOPPED or used != self._used:
            self._used, self._since = used, time.monotonic()
        return time.monotonic() - self._since > STANDSTILL_S
