"""The engine as a child process that can be asked to leave, and that is never left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from trellis_train.supervise import subreaper


class EngineProcess:
    """An engine on its subreaper, in a session of its own. Start it from the main thread.

    (The kernel ties the subreaper's death signal to the thread that started it.)
    """

    def __init__(self, command: list[str], *, environment: dict[str, str], folder: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the command is the platform's own
            [sys.executable, "-I", "-S", subreaper.__file__, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The process id of the subreaper; the engine is its child."""
        return self._process.pid

    def list_streams(self) -> tuple[int, int]:
        """Return the file descriptors of standard output and standard error."""
        if self._process.stdout is None or self._process.stderr is None:
            raise RuntimeError("the engine was started without pipes")
        return self._process.stdout.fileno(), self._process.stderr.fileno()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit code (negative: the signal), or None if it still runs after ``timeout_s``."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """Ask the engine to end now (SIGTERM)."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the engine and all of its processes (SIGKILL)."""
        self._signal(signal.SIGUSR1)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
