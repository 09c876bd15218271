"""The processes that carry out tasks: one for each, or this one where a test asks for it."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from trellis_api.core.settings import Settings
from trellis_contracts.data_tasks import DataTaskKind

from trellis_workers.data.files import LOG_FILE


class Child(Protocol):
    """Something that carries out the task of a folder."""

    def wait(self, seconds: float) -> int | None:
        """The exit status, or None where it is still at work after that time."""

    def end(self) -> None:
        """End it with everything that it started; harmless where it is over."""


class Starter(Protocol):
    """Makes a child for a folder; ``lock`` is the store's lock file, which the child shares."""

    def __call__(self, settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child: ...


class ProcessChild:
    """A program of its own."""

    def __init__(self, command: Sequence[str], folder: Path, lock: IO[str]) -> None:
        with (folder / LOG_FILE).open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own programs
                [*command, str(folder), str(lock.fileno())],
                stdin=subprocess.PIPE,  # it leaves when this end closes, whatever becomes of us
                stdout=log,
                stderr=log,
                cwd=folder,
                pass_fds=[lock.fileno()],
                start_new_session=True,
            )

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        _kill_group(self._process)


class WarmChildren:
    """Keeps a process for previews from one to the next; one that crashed or was ended is replaced."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child:
        if kind is not DataTaskKind.PREVIEW:
            return start_process(settings, kind, folder, lock)
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start(lock)
        return WarmTurn(self._process, folder)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            _kill_group(self._process)
            self._process = None

    @staticmethod
    def _start(lock: IO[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "trellis_workers.data.warm_child", str(lock.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # before the first task; then it writes to the task's own log
            pass_fds=[lock.fileno()],
            start_new_session=True,
            text=True,
            bufsize=1,
        )


class WarmTurn:
    """One task of a process that carries out several."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._status: int | None = None
        if process.stdin is None or process.stdout is None:
            raise ValueError("a warm child is spoken with")
        self._answers = process.stdout
        # One that has died meanwhile is noticed when it is waited for.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{folder}\n")

    def wait(self, seconds: float) -> int | None:
        if self._status is None and select.select([self._answers], [], [], seconds)[0]:
            line = self._answers.readline()
            self._status = int(line) if line.strip() else self._process.wait()
        return self._status

    def end(self) -> None:
        if self._status is None:
            _kill_group(self._process)


def _kill_group(process: "subprocess.Popen[Any]") -> None:
    """End a process that leads its session, with everything that it started."""
    # The group outlives its leader where that left something behind.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


class DoneChild:
    """A task that was carried out already, in this process."""

    def __init__(self, status: int) -> None:
        self._status = status

    def wait(self, seconds: float) -> int | None:  # noqa: ARG002 - it is over
        return self._status

    def end(self) -> None:
        return


def start_process(settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child:
    """A process for the task."""
    if kind is DataTaskKind.TOKENS:
        # The engine's own code tells what a model is trained on.
        python = str(settings.job_python or sys.executable)
        return ProcessChild([python, "-m", "trellis_train.data.token_view"], folder, lock)
    return ProcessChild([sys.executable, "-m", "trellis_workers.data.child"], folder, lock)


def carry_out_here(settings: Settings, kind: DataTaskKind, folder: Path, lock: IO[str]) -> Child:
    """The same in this process, which saves a test the start of another one."""
    from trellis_workers.data.child import HANDLERS, carry_out

    if kind not in HANDLERS:
        return start_process(settings, kind, folder, lock)
    return DoneChild(carry_out(folder, lock))
