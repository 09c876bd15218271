"""A child process with limits: it ends in time, with bounded memory, or when nobody wants it any more."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_contracts.environments import BAD_REQUEST, CODE_PREFIX, EXIT_BAD_REQUEST

from trellis_workers.core.child_environment import plain_environment
from trellis_workers.core.last_lines import last_lines

MODULE = "trellis_train.agents.environments"
LOG_FILE, ANSWER_FILE = "log", "answer.json"
MEMORY_BYTES = 16 * 1024**3
_POLL_S = 0.5


class ChildFailed(Exception):
    """The child did not do what it was asked; message and code are for the person who asked."""

    def __init__(self, reason: str, cause: str) -> None:
        super().__init__(reason)
        self.cause = cause


class NotWantedError(Exception):
    """Nobody waits for the child any more."""


@dataclass(frozen=True)
class Order:
    """What to run, and for how long."""

    arguments: Sequence[str]
    #: Log and answer are written here.
    folder: Path
    timeout_s: float
    module: str = MODULE
    #: Variables of the worker's with names like secrets, which the child needs all the same.
    kept: Sequence[str] = ("HF_TOKEN",)


def run_child(settings: Settings, order: Order, *, is_wanted: Callable[[], bool]) -> Path:
    """Run it to its end; the file of what it printed.

    Raises ``ChildFailed``, or ``NotWantedError`` where ``is_wanted``, asked twice a second, says no.
    """
    python = str(settings.job_python or sys.executable)
    answer, log = order.folder / ANSWER_FILE, order.folder / LOG_FILE
    deadline = time.monotonic() + order.timeout_s
    with answer.open("wb") as output, log.open("wb") as errors:
        child = subprocess.Popen(  # noqa: S603 - our own module
            [python, "-m", order.module, *order.arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=plain_environment(*order.kept),
            cwd=order.folder,
            start_new_session=True,
        )
        try:
            resource.prlimit(child.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            _wait(child, deadline, order.timeout_s, is_wanted)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, 9)
                child.wait()
    _check(child.returncode, log)
    return answer


def _wait(
    child: subprocess.Popen[bytes], deadline: float, timeout_s: float, is_wanted: Callable[[], bool]
) -> None:
    while True:
        try:
            child.wait(min(_POLL_S, max(0.0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise ChildFailed(f"Timed out after {timeout_s:g} s.", "time_limit") from None
            if not is_wanted():
                raise NotWantedError from None
        else:
            return


def _check(exit_code: int, log: Path) -> None:
    if exit_code == 0:
        return
    lines = last_lines(log, 20)
    said = lines[-1].strip() if lines else f"The process exited with code {exit_code}."
    if exit_code != EXIT_BAD_REQUEST:
        raise ChildFailed(said, "crashed")
    # Libraries may add a line of theirs when the process ends.
    places = [place for place, line in enumerate(lines[:-1]) if line.startswith(CODE_PREFIX)]
    if not places:
        raise ChildFailed(said, BAD_REQUEST)
    raise ChildFailed(lines[places[-1] + 1].strip(), lines[places[-1]].removeprefix(CODE_PREFIX).strip())
