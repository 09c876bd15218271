"""A real Ray cluster on which only the training is replaced.

Its Python finds a small ``trellis_train`` before the real one, which notes its start and its devices.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis_cli.services.ports import pick_free

from trellis_testing.waiting import wait_until

#: Ray gives up when a node has not registered within 30 s, which busy cores exceed now and then.
_ATTEMPTS = 3
_LEAN = ("--disable-usage-stats", "--object-store-memory=100000000")
#: Notes that it was started, then does as the files beside its spec say.
STUB_ENTRYPOINT = '''
"""Stands in for training: notes its start, then waits to be told how to end."""
import json, os, sys, time
from pathlib import Path

spec = json.loads(Path(sys.argv[1]).read_text())
attempt_dir = Path(spec["attempt_dir"])
# Beside the data root, of which it sees only its own folders.
starts = attempt_dir.parent.parent.parent.with_suffix(".starts")
descriptor = os.open(starts, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(descriptor, f"{spec['job_id']}-{spec['attempt']}\\n".encode())
place = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")}
(attempt_dir / "place").write_text(json.dumps(place))
(attempt_dir / "pid").write_text(str(os.getpid()))
deadline = time.monotonic() + 120
while time.monotonic() < deadline:
    if (attempt_dir / "exit").exists():
        sys.exit(int((attempt_dir / "exit").read_text()))
    if (attempt_dir / "stop").exists() and not (attempt_dir / "deaf").exists():
        sys.exit(75)
    time.sleep(0.05)
'''


def end_process(process: subprocess.Popen[Any], number: int = signal.SIGTERM) -> None:
    """End a process that leads its session, with everything in it."""
    if process.poll() is None:
        os.killpg(process.pid, number)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass
class RayHead:
    """A Ray head, and what others need to reach it."""

    dashboard_url: str
    environment: dict[str, str]
    address: str
    #: That of the cluster's processes.
    node_environment: dict[str, str]

    def count_nodes(self) -> int:
        """Count the nodes that have joined and are alive; 0 while the cluster does not answer."""
        request = urllib.request.Request(f"{self.dashboard_url}/nodes?view=summary")
        request.add_header(
            "Authorization", f"Bearer {Path(self.environment['RAY_AUTH_TOKEN_PATH']).read_text()}"
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                nodes = json.load(response)["data"]["summary"]
        except OSError:
            return 0
        return sum(node.get("raylet", {}).get("state") == "ALIVE" for node in nodes)


@contextlib.contextmanager
def running_head(*resources: str) -> Iterator[RayHead]:
    """Start a head with these resources."""
    # A short path: Ray's sockets have little room for their names.
    folder = Path(tempfile.mkdtemp(prefix="tr", dir="/tmp"))
    stub = folder / "stub" / "trellis_train"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    (stub / "entrypoint.py").write_text(STUB_ENTRYPOINT)
    (folder / "token").write_text("a-token-for-the-tests-of-the-workers")
    process, head = _start_head(folder, resources)
    try:
        yield head
    finally:
        process.terminate()  # it ends the processes of the cluster, in order
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _start_head(folder: Path, resources: Sequence[str]) -> tuple[subprocess.Popen[bytes], RayHead]:
    """Start the head, again where it gave up on itself: its limits are those of an idle machine."""
    auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
    environment = {
        **os.environ,
        **auth,
        "PYTHONPATH": str(folder / "stub"),
        "RAY_JOB_START_TIMEOUT_SECONDS": "60",
    }
    for attempt in range(_ATTEMPTS):
        port, dashboard_port, agent_port, client_port = pick_free(4)
        command = [
            str(Path(sys.executable).parent / "ray"), "start", "--head", "--block", f"--port={port}",
            "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard_port}",
            f"--temp-dir={folder}/ray{attempt}", f"--dashboard-agent-listen-port={agent_port}",
            f"--ray-client-server-port={client_port}", "--node-ip-address=127.0.0.1", *_LEAN, *resources,
        ]  # fmt: skip
        head = RayHead(f"http://127.0.0.1:{dashboard_port}", auth, f"127.0.0.1:{port}", environment)
        process = _start(command, environment, folder / f"head-{attempt}.log")
        if _has_come(process, head, nodes=1):
            return process, head
        end_process(process)
    raise AssertionError((folder / f"head-{_ATTEMPTS - 1}.log").read_text()[-3000:])


@contextlib.contextmanager
def joined_node(head: RayHead, *resources: str) -> Iterator[None]:
    """Start another node of the head's cluster on this machine."""
    nodes = head.count_nodes()
    with tempfile.TemporaryDirectory(prefix="trnode-") as folder:
        for attempt in range(_ATTEMPTS):
            command = [
                str(Path(sys.executable).parent / "ray"), "start", f"--address={head.address}", "--block",
                "--node-ip-address=127.0.0.1", f"--dashboard-agent-listen-port={pick_free(1)[0]}",
                *_LEAN, *resources,
            ]  # fmt: skip
            log = Path(folder) / f"node-{attempt}.log"
            process = _start(command, head.node_environment, log)
            if _has_come(process, head, nodes=nodes + 1):
                break
            end_process(process)
        else:
            raise AssertionError(log.read_text()[-3000:])
        try:
            yield
        finally:
            end_process(process)


def _start(command: Sequence[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)


def _has_come(process: subprocess.Popen[bytes], head: RayHead, *, nodes: int) -> bool:
    """Wait until the cluster has as many nodes, or the process has ended; whether it lives."""

    def is_settled() -> bool:
        return process.poll() is not None or head.count_nodes() >= nodes

    try:
        wait_until(is_settled, 180, "the node joins the cluster", pause_s=0.5)
    except AssertionError:
        end_process(process)
        raise
    return process.poll() is None
