"""Answers requests with a model: ``python -m trellis_train.engines.serve <spec.json>``.

vLLM's OpenAI server is a process of its own (``trellis_train.serve``), which this one starts, watches and
ends. It listens on the node's own address, or on loopback where the cluster is this machine, and answers
whoever has the key of the attempt's folder: the API.
"""

import ipaddress
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from functools import partial
from pathlib import Path
from typing import NoReturn

from trellis_contracts.attempt import ADAPTERS_FOLDER, ENGINE_KEY_FILE
from trellis_contracts.events import ProgressEvent, ServingEvent
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_STOPPED, JobSpec, ServeTask

from trellis_train.engines.engine_client import POLL_S
from trellis_train.engines.serve_adapters import AdapterLoader
from trellis_train.engines.serve_load import LoadReporter
from trellis_train.engines.serve_weights import WeightsReplacer, is_replaceable
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.stop import StoppedByRequest, leave_if_asked
from trellis_train.serve import DRAIN_S, KEY_VARIABLE, find_tool_problem

logger = logging.getLogger(__name__)

PRODUCER = "server"
_LOOPBACK = "127.0.0.1"
#: Large weights come slowly from a cold disk.
_START_S = 1800.0
#: Between two questions whether the engine is well.
_LOOK_INTERVAL_S = 2.0
_LOOK_TIMEOUT_S = 5.0
#: A server that says nothing for so long has died, whatever its process does.
_SILENT_S = 20.0
#: After a stop, requests in flight finish, and the server needs a moment to exit; then it is killed.
_END_S = DRAIN_S + 2.0
#: What vLLM's ``/health`` says of an engine that has died.
_DEAD = 503


#: Of the server's output, among which the reason of a failed start is looked for.
_LINES = 400
_ERROR = re.compile(r"\b((?:\w+\.)*\w*(?:Error|Exception): .+)")
#: What vLLM says last where its engine has said why before.
_NO_REASON = "Engine core initialization failed"


class EngineNotStarted(Exception):
    """The model cannot be served; the message says why."""


class EngineDied(Exception):
    """The server is gone, or answers no more, without having been asked to leave."""


def main(arguments: list[str]) -> int:
    """Serve as the spec file named in ``arguments`` says; the exit code of the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    if len(arguments) != 1:
        print("usage: python -m trellis_train.engines.serve <spec.json>", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = JobSpec.model_validate_json(Path(arguments[0]).read_text())
    if spec.serve is None:
        print("bad spec: it does not say what to serve", file=sys.stderr)
        return EXIT_BAD_SPEC
    # Before transformers is imported, which gathers a checkpoint's weights.
    os.environ.update({**spec.env, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"})
    try:
        _serve(spec, spec.serve)
    except StoppedByRequest:
        print("The endpoint was stopped.", flush=True)
        return EXIT_STOPPED
    except (EngineDied, EngineNotStarted) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1


def _serve(spec: JobSpec, task: ServeTask) -> NoReturn:
    """Serve until asked to stop (``StoppedByRequest``), or until the engine dies."""
    from trellis_train.evaluate.weights import provide_weights

    spool = Spool(spec.attempt_dir, PRODUCER)
    spool.write(ProgressEvent(time=now(), phase="loading", step=0))
    with provide_weights(spec, task.checkpoint, partial(leave_if_asked, spec.attempt_dir)) as folder:
        if task.is_replaceable and not is_replaceable(folder):
            task = task.model_copy(update={"is_replaceable": False})
        server, refusal = start_server(spec, task, folder)
        max_lora_rank = None if refusal else task.max_lora_rank
        load = LoadReporter(server.url, server.key, spool)
        try:
            spool.write(
                ServingEvent(
                    time=now(),
                    host=ipaddress.ip_address(server.host),
                    port=server.port,
                    max_model_len=server.read_window(),
                    max_lora_rank=max_lora_rank,
                    tool_problem=None if task.is_encoder else find_tool_problem(folder),
                    is_replaceable=task.is_replaceable,
                )
            )
            spool.write(ProgressEvent(time=now(), phase="serving", step=0))
            if task.max_lora_rank is not None:
                AdapterLoader(spec, server.url, server.key, spool, refusal=refusal).start()
            if task.is_replaceable:
                WeightsReplacer(
                    spec, server.url, server.key, spool, folder=folder, fail=server.give_up
                ).start()
            load.start()
            server.watch()
        finally:
            load.end()
            server.end()
            shutil.rmtree(Path(spec.attempt_dir) / ADAPTERS_FOLDER, ignore_errors=True)


def start_server(spec: JobSpec, task: ServeTask, folder: Path) -> tuple["Server", str | None]:
    """Start a server; also return why it has no room for the requested adapters, or None.

    vLLM can't add adapters to every architecture, and room for them takes memory: what does not start with
    it is started without, so that the base model is served in any case.
    """
    try:
        return _start_once(spec, task, folder), None
    except EngineNotStarted as error:
        if task.max_lora_rank is None:
            raise
        print(f"The engine doesn't start with room for adapters, trying without: {error}", flush=True)
        without = task.model_copy(update={"max_lora_rank": None})
        return _start_once(spec, without, folder), f"The engine doesn't start with room for adapters: {error}"


def _start_once(spec: JobSpec, task: ServeTask, folder: Path) -> "Server":
    server = Server(spec, task, folder)
    try:
        server.wait_until_it_answers()
    except BaseException:
        server.end()
        raise
    return server


class Server:
    """vLLM's server as a child process."""

    def __init__(self, spec: JobSpec, task: ServeTask, folder: Path) -> None:
        self.host, self._attempt_dir = find_address(), spec.attempt_dir
        self._name = task.served_name
        self.port = find_free_port(self.host)
        self.key = (Path(spec.attempt_dir) / ENGINE_KEY_FILE).read_text()
        command = [
            sys.executable, "-m", "trellis_train.serve", str(folder),
            f"--name={self._name}", f"--host={self.host}", f"--port={self.port}",
            f"--platform={spec.platform}", f"--tensor-parallel={task.tensor_parallel}",
        ]  # fmt: skip
        command += _describe_output(task)
        if task.is_replaceable:
            command.append("--replaceable")
        if task.max_lora_rank is not None:
            command += [f"--max-lora-rank={task.max_lora_rank}", f"--max-loras={task.max_loras}"]
        # Its input closes with this process, whatever becomes of it, and then it leaves.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, KEY_VARIABLE: self.key},
        )
        self._failure: str | None = None
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def wait_until_it_answers(self) -> None:
        """Return when the model is loaded; raises ``EngineNotStarted`` where it cannot be."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            leave_if_asked(self._attempt_dir)
            code = self._process.poll()
            if code is not None:
                self._reader.join(_LOOK_TIMEOUT_S)
                raise EngineNotStarted(find_reason(list(self._lines)) or f"It {describe_exit(code)}.")
            if self._look() == 200:
                return
            time.sleep(POLL_S)
        raise EngineNotStarted(f"It did not respond within {_START_S:g} s.")

    def watch(self) -> NoReturn:
        """Look after the server; ends by raising only."""
        heard_at = looked_at = time.monotonic()
        while True:
            leave_if_asked(self._attempt_dir)
            if self._failure is not None:
                raise EngineDied(self._failure)
            code = self._process.poll()
            if code is not None:
                raise EngineDied(f"The engine {describe_exit(code)}.")
            if time.monotonic() - looked_at >= _LOOK_INTERVAL_S:
                status, looked_at = self._look(), time.monotonic()
                if status == _DEAD:
                    raise EngineDied("The engine process died (reported by its server).")
                if status is not None:
                    heard_at = looked_at
                elif looked_at - heard_at > _SILENT_S:
                    raise EngineDied(f"The engine did not respond for {_SILENT_S:g} s.")
            time.sleep(POLL_S)

    def give_up(self, reason: str) -> None:
        """Let ``watch`` end: the server runs, but must not answer any more."""
        self._failure = reason

    def read_window(self) -> int | None:
        """Read the limit on prompt and answer tokens together, as the server determined it."""
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self.url}/v1/models", headers={"Authorization": f"Bearer {self.key}"}
        )
        with urllib.request.urlopen(request, timeout=_LOOK_TIMEOUT_S) as answer:  # noqa: S310
            window = json.load(answer)["data"][0].get("max_model_len")
        return int(window) if window else None

    def end(self) -> None:
        """End it, requests in flight after a grace."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def _look(self) -> int | None:
        """Return the status of ``/health``, or None if there is no response."""
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=_LOOK_TIMEOUT_S) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def _pass_on(self) -> None:
        """Hand the server's output on, and remember its end."""
        if self._process.stdout is None:
            return
        for line in self._process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            self._lines.append(line.decode(errors="replace"))


def _describe_output(task: ServeTask) -> list[str]:
    """Return options of the output. The length that an encoder reads is in its own files."""
    if task.is_encoder:
        window = [] if task.max_model_len is None else [f"--max-model-len={task.max_model_len}"]
        return ["--embeddings", *window]
    return ["--tools", f"--max-model-len={task.max_model_len or -1}", f"--max-tokens={task.max_tokens}"]


def find_reason(lines: list[str]) -> str | None:
    """Find an error message in the server's last lines, or None."""
    for line in reversed(lines):
        match = _ERROR.search(line)
        if match and _NO_REASON not in line:
            return match.group(1).strip()[:500]
    return None


def find_address() -> str:
    """Return the address to listen on: loopback for a local cluster, else this node's cluster address.

    It is the one by which the node reaches the head, which Ray names to the processes that it starts.
    """
    host, _, port = os.environ.get("RAY_ADDRESS", "").rpartition(":")
    host = host.strip("[]")
    if host in ("", _LOOPBACK, "localhost", "::1"):
        return _LOOPBACK
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        return str(probe.getsockname()[0])


def find_free_port(host: str) -> int:
    """Return a port that is free at the moment."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def describe_exit(code: int) -> str:
    """Return ``was killed by SIGKILL`` or ``exited with code 1``."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
