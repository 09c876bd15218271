"""End processes: with their whole group at once, or after they were asked to."""

import contextlib
import os
import signal
import subprocess
from typing import Any


def end_group(process: "subprocess.Popen[Any]") -> None:
    """End a process that leads its session, with everything that it started; harmless where it is over."""
    # The group outlives its leader where that left something behind.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
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
        process.wait()
