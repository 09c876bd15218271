"""The processes that carry out tasks: one for each, or this one where a test asks for it."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Protocol

from trellis_api.core.settings import Settings
from trellis_contracts.data_tasks import EXIT_NO_MEMORY, DataTaskKind
from trellis_data.warm_process import LOG_FILE

from trellis_workers.core.child_environment import data_environment
from trellis_workers.core.processes import Standstill, end_group
from trellis_workers.data.memory_watch import MemoryWatch
from trellis_workers.data.warm import Command, WarmProcess, WarmProcesses, WarmTurn

#: As an exit status: the process was stopped, and nobody lets it go on.
STOOD_STILL = -signal.SIGSTOP


class Child(Protocol):
    """Something that carries out the task of a folder."""

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit status and return it; None if the child is still running after that time."""

    def end(self) -> None:
        """End it with everything that it started; harmless where it is over."""


class Starter(Protocol):
    """Makes a child for a folder; ``lock`` is the store's lock file, which the child shares."""

    def __call__(self, settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child: ...


class ProcessChild:
    """A program of its own."""

    def __init__(
        self, command: Sequence[str], folder: Path, lock: IO[str], *, max_bytes: int | None = None
    ) -> None:
        """Start the program; with ``max_bytes``, it is killed when it takes more memory."""
        with (folder / LOG_FILE).open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own programs
                [*command, str(folder), str(lock.fileno())],
                stdin=subprocess.PIPE,  # it leaves when this end closes, whatever becomes of us
                stdout=log,
                stderr=log,
                env=data_environment(),
                cwd=folder,
                pass_fds=[lock.fileno()],
                start_new_session=True,
            )
        self._standstill = Standstill(self._process.pid)
        self._watch: MemoryWatch | None = None
        if max_bytes is not None:
            self._watch = MemoryWatch(self._process.pid, self._kill, max_bytes=max_bytes)

    def wait(self, seconds: float) -> int | None:
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return STOOD_STILL if self._standstill.lasts() else None
        was_killed = status < 0 and self._watch is not None and self._watch.has_outgrown
        return EXIT_NO_MEMORY if was_killed else status

    def end(self) -> None:
        if self._watch is not None:
            self._watch.end()
        end_group(self._process)

    def _kill(self) -> None:
        # One that was waited for may have left its number to another process.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


class WarmChildren:
    """Keeps processes for work that somebody waits for from one task to the next."""

    def __init__(self, processes: WarmProcesses | None = None) -> None:
        self._processes = processes or WarmProcesses()

    def __call__(self, settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child:
        command = _warm_command(settings, kind)
        if command is None:
            return start_process(settings, kind, folder, lock)
        return self._processes.begin(command, folder, lock, max_bytes=settings.preview_memory_bytes)

    def end_idle(self) -> None:
        """End processes that nobody has needed for a time."""
        self._processes.end_idle()

    def close(self) -> None:
        """End all child processes."""
        self._processes.close()


class DoneChild:
    """A task that was carried out already, in this process."""

    def __init__(self, status: int) -> None:
        self._status = status

    def wait(self, seconds: float) -> int | None:  # noqa: ARG002 - it is over
        return self._status

    def end(self) -> None:
        return


def start_process(settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child:
    """Start a process for the task, which ends with it."""
    command = _warm_command(settings, kind)
    if command is not None:
        process = WarmProcess(command, lock, folder.parent)
        return WarmTurn(process, folder, kept_bytes=0, max_bytes=settings.preview_memory_bytes)
    # What is read may be made to fill the memory; an import takes the same however much it reads.
    max_bytes = settings.preview_memory_bytes if kind is DataTaskKind.IMPORT else None
    command = (sys.executable, "-m", "trellis_workers.data.child")
    return ProcessChild(command, folder, lock, max_bytes=max_bytes)


def _warm_command(settings: Settings, kind: DataTaskKind) -> Command | None:
    """Return the command for tasks that users wait for; None for kinds that take long anyway."""
    if kind is DataTaskKind.PREVIEW:
        return (sys.executable, "-m", "trellis_workers.data.warm_child")
    if kind is DataTaskKind.TOKENS:
        # The engine's own code tells what a model is trained on.
        return (str(settings.job_python or sys.executable), "-m", "trellis_train.data.token_view")
    return None


def carry_out_here(settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child:
    """Carry out the task in this process, which saves a test from starting another one."""
    from trellis_workers.data.child import HANDLERS, carry_out

    if kind not in HANDLERS:
        return start_process(settings, kind, folder, lock)
    return DoneChild(carry_out(folder, lock))
