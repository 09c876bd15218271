"""Time and memory of a command with all that it starts, on two cores."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from trellis_cli.errors import Problem

CORES = 2
_EVERY_S = 0.05


@dataclass(frozen=True)
class Usage:
    """What a command took."""

    seconds: float
    #: Highest sum of the resident memory of all its processes; what they share counts for each.
    peak_bytes: int


def measure(command: list[str], log: Path, timeout_s: float, env: dict[str, str] | None = None) -> Usage:
    """Run a command to its end; raises ``Problem`` with the end of its output where it fails."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    started = time.perf_counter()
    peak = 0
    with log.open("wb") as output:
        running = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdout=output,
            stderr=output,
            env=os.environ | (env or {}),
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
            start_new_session=True,
        )
        while running.poll() is None:
            peak = max(peak, _resident(running.pid))
            if time.perf_counter() - started > timeout_s:
                _end(running.pid)
                running.wait()
                raise Problem(f"{command[0]} took longer than {timeout_s:.0f} s", hint=f"output: {log}")
            time.sleep(_EVERY_S)
    if running.returncode:
        raise Problem(
            f"{' '.join(command)} failed with exit code {running.returncode}: "
            f"{log.read_text(errors='replace')[-2000:]}"
        )
    return Usage(time.perf_counter() - started, peak)


def _resident(pid: int) -> int:
    total = 0
    for process in _tree(pid):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _end(pid: int) -> None:
    for process in _tree(pid):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
