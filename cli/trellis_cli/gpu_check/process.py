"""Runs a command with a time limit; nothing of it is left behind, whatever it has started."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trellis_cli.services.platform import python_command

#: Adopts what the command's processes orphan, and kills all of them at the end, at SIGUSR1 and at our death.
#: (An engine's helpers may have sessions of their own, and may hold the pipes and the GPU.)
_SUBREAPER = "trellis_train.supervise.subreaper"
#: The line of a traceback that says what happened, also as a rank of torchrun prints it; not torchrun's own.
_ERROR_LINE = re.compile(r"^(?:\[rank\d+\]:\s*)?((?!.*ChildFailedError)[\w.]*(?:Error|Exception)\b.*)$", re.M)


class Ended(NamedTuple):
    """How a command ended."""

    #: None: it still ran when its time was up.
    exit_code: int | None
    output: str
    errors: str
    seconds: float

    @property
    def last_words(self) -> str:
        """The last error that it told, or else the last line that it printed."""
        if found := _ERROR_LINE.findall(self.errors):
            return str(found[-1]).strip()
        lines = (self.errors.strip() or self.output.strip()).splitlines()
        return lines[-1].strip() if lines else ""


def run_limited(
    command: Sequence[str], *, limit_s: float, environment: Mapping[str, str] | None = None
) -> Ended:
    """Run a command to its end or to its limit, from the main thread: the subreaper dies with it."""
    started = time.monotonic()
    exit_code: int | None = None
    process = subprocess.Popen(  # noqa: S603 - commands of our own
        python_command("-m", _SUBREAPER, str(os.getpid()), *command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        output, errors = process.communicate(timeout=limit_s)
        exit_code = process.returncode
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
        output, errors = process.communicate()
    finally:
        if process.poll() is None:  # we leave by an error of our own
            process.send_signal(signal.SIGUSR1)
            process.wait()
    return Ended(exit_code, output, errors, round(time.monotonic() - started, 1))
