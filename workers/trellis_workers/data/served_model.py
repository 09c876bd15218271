"""A model of the platform behind an OpenAI-style endpoint, for as long as a task asks it."""

import contextlib
import os
import secrets
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from trellis_data.pipeline.problem import PipelineProblem

from trellis_workers.core.child_environment import plain_environment
from trellis_workers.core.last_lines import last_lines
from trellis_workers.core.processes import end_gently
from trellis_workers.data.files import ChildTask
from trellis_workers.data.tools import Tools

#: Holds the server's key in this process and in the server's: it is good for this server alone.
KEY_VARIABLE = "TRELLIS_SERVED_MODEL_KEY"
LOG_FILE = "server.log"
_HOST = "127.0.0.1"
#: Large weights come slowly from a cold disk.
_START_S = 1800.0
_POLL_S = 0.3
_END_S = 20.0
#: Of the server's log, among which the reason is looked for: an engine's traceback and the server's own.
_LINES = 400


@contextlib.contextmanager
def serving(task: ChildTask, tools: Tools) -> Iterator[str | None]:
    """Serve the task's model while the context lasts and yield its address; None if it names no model.

    The server belongs to this process's group, which is ended as a whole, and leaves when its input
    closes: whatever becomes of this process, nothing of it stays.
    """
    if task.model_dir is None:
        yield None
        return
    tools.tell_rows("serve", 0)
    os.environ[KEY_VARIABLE] = secrets.token_urlsafe(32)
    port, log = _free_port(), tools.folder / LOG_FILE
    server = _start(task, port, log)
    try:
        _wait_until_it_answers(server, port, log, tools)
        yield f"http://{_HOST}:{port}/v1"
    finally:
        _end(server)
        del os.environ[KEY_VARIABLE]


def _start(task: ChildTask, port: int, log: Path) -> "subprocess.Popen[bytes]":
    name = getattr(task.request, "model", None) or "model"
    command = [task.job_python, "-m", "trellis_train.serve", str(task.model_dir)]
    with log.open("wb") as said:
        return subprocess.Popen(  # noqa: S603 - our own module
            [*command, "--name", name, "--port", str(port), "--platform", task.platform],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            env=plain_environment(KEY_VARIABLE),
        )


def _wait_until_it_answers(server: "subprocess.Popen[bytes]", port: int, log: Path, tools: Tools) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise PipelineProblem("model_not_served", f"The model could not be served: {_last_word(log)}")
        if _answers(port):
            return
        tools.tell_rows("serve", 0)
        time.sleep(_POLL_S)
    raise PipelineProblem("model_not_served", f"The model did not start within {_START_S:g} s.")


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{_HOST}:{port}/health", timeout=5):
            return True
    except OSError:  # not there yet
        return False


def _last_word(log: Path) -> str:
    """Return the last line of the server's log that looks like an error."""
    lines = last_lines(log, _LINES)
    errors = [line for line in lines if "Error" in line]
    return (errors or lines or ["the server exited without a message"])[-1].strip()[:500]


def _end(server: "subprocess.Popen[bytes]") -> None:
    if server.stdin is not None:
        server.stdin.close()
    end_gently(server, _END_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
