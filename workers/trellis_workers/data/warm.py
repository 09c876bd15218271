"""Processes that are kept from one task to the next, for work that somebody waits for.

One for each program, and each with one task at a time. One whose task was broken off or went wrong is
ended and replaced, and so is one that has grown or that nobody has needed for a time. One that takes more
memory than it may is killed in the middle of its task.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import psutil
from trellis_contracts.data_tasks import EXIT_BAD_REQUEST, EXIT_NO_MEMORY

from trellis_workers.core.child_environment import data_environment
from trellis_workers.core.processes import end_group
from trellis_workers.data.memory_watch import MemoryWatch, resident_bytes

#: What a process may hold while nobody needs it.
KEPT_BYTES = 1024**3
#: How long it is kept for the next task.
KEPT_S = 120.0
#: Statuses after which a process is as good as new.
_WELL = (0, EXIT_BAD_REQUEST)

Command = tuple[str, ...]


class WarmProcess:
    """A program that reads folders and answers with exit statuses (``trellis_data.warm_process``)."""

    def __init__(self, command: Sequence[str], lock: IO[str], work_dir: Path) -> None:
        """Start the program with the number of ``lock``, the store's lock file, as its last argument."""
        self._process = subprocess.Popen(  # noqa: S603 - our own programs
            [*command, str(lock.fileno())],
            stdin=subprocess.PIPE,  # it leaves when this end closes, whatever becomes of us
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # before the first task; then it writes to the task's own log
            env=data_environment(),
            cwd=work_dir,
            pass_fds=[lock.fileno()],
            start_new_session=True,
            text=True,
            bufsize=1,
        )
        self.rested_at = time.monotonic()
        self._is_ended = False

    @property
    def is_alive(self) -> bool:
        """Whether it can be given a task."""
        if self._process.poll() is not None:
            return False
        # One that was killed may still have threads that end, and cannot be waited for until then.
        try:
            return bool(psutil.Process(self._process.pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    @property
    def resident_bytes(self) -> int:
        """Memory that it holds, with everything that it started."""
        return resident_bytes(self._process.pid)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def give(self, folder: Path) -> None:
        """Let it begin with a task."""
        if self._process.stdin is None:
            raise ValueError("a warm process is spoken with")
        # One that has died meanwhile is noticed when it is listened to.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{folder}\n")

    def hear(self, seconds: float) -> int | None:
        """Return the exit status of the task, or of the process if it died; None while it still runs."""
        answers = self._process.stdout
        if answers is None:
            raise ValueError("a warm process is listened to")
        if not select.select([answers], [], [], seconds)[0]:
            return None
        if line := answers.readline():
            return int(line)
        self.end()
        return self._process.returncode

    def kill(self) -> None:
        """Let it die with everything that it started, whoever is listening to it meanwhile."""
        # One that was waited for may have left its number to another process.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """End it with everything that it started; harmless where it is over."""
        # Once: its number may be another process's later.
        if not self._is_ended:
            self._is_ended = True
            end_group(self._process)


class WarmTurn:
    """A task of a warm process."""

    def __init__(self, process: WarmProcess, folder: Path, *, kept_bytes: int, max_bytes: int) -> None:
        self._process = process
        self._kept_bytes = kept_bytes
        self._status: int | None = None
        process.give(folder)
        self._watch = MemoryWatch(process.pid, process.kill, max_bytes=max_bytes)

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit status and return it; None if the task is still running after that time."""
        if self._status is None:
            status = self._process.hear(seconds)
            if status is not None:
                self._watch.end()
                was_killed = self._watch.has_outgrown and status < 0
                self._status = EXIT_NO_MEMORY if was_killed else status
        return self._status

    def end(self) -> None:
        """Keep the process for the next task, where it is fit for one."""
        self._watch.end()
        self._process.rested_at = time.monotonic()
        if self._status not in _WELL or self._process.resident_bytes > self._kept_bytes:
            self._process.end()


class WarmProcesses:
    """At most one process of each program."""

    def __init__(self, *, kept_s: float = KEPT_S, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_s = kept_s
        self._kept_bytes = kept_bytes
        self._processes: dict[Command, WarmProcess] = {}

    def begin(self, command: Command, folder: Path, lock: IO[str], *, max_bytes: int) -> WarmTurn:
        """Let the program's process begin with the task of a folder; one is started where there is none."""
        process = self._processes.get(command)
        if process is None or not process.is_alive:
            self._end(command)
            # Not the task's own folder, which goes when the task is over.
            process = self._processes[command] = WarmProcess(command, lock, folder.parent)
        return WarmTurn(process, folder, kept_bytes=self._kept_bytes, max_bytes=max_bytes)

    def end_idle(self) -> None:
        """End those that nobody has needed for a time. Call it between tasks."""
        rested = time.monotonic() - self._kept_s
        for command in [each for each, process in self._processes.items() if process.rested_at < rested]:
            self._end(command)

    def close(self) -> None:
        """End all processes."""
        for command in list(self._processes):
            self._end(command)

    def _end(self, command: Command) -> None:
        if process := self._processes.pop(command, None):
            process.end()
