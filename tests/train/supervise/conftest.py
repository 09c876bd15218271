"""A stand-in for the ingest API on a real socket, which can fail in every way that a network can."""

import gzip
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.events import Heartbeat, IngestBatch
from trellis_contracts.spec import JobSpec

TOKEN = "job-token-0123456789"


class Platform:
    """Takes batches as the ingest API does: each number once, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.heartbeats: list[Heartbeat] = []
        self.next_sequence = 1
        self.is_stop_requested = False
        #: What happens to the next batches: "ok", "lose-request", "lose-reply", "error", "error-after",
        #: or a status to answer with.
        self.faults: deque[str | int] = deque()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen; after ``stop`` on the same port as before."""
        platform = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                fault = (
                    platform.faults.popleft() if self.path.endswith("/batches") and platform.faults else "ok"
                )
                if fault == "lose-request":
                    self.close_connection = True
                    return
                status, answer = platform.answer(self.path, self.headers.get("Authorization"), body, fault)
                if fault == "lose-reply":
                    self.close_connection = True
                    return
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_arguments: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(
        self, path: str, token: str | None, body: bytes, fault: str | int
    ) -> tuple[int, dict[str, Any]]:
        if isinstance(fault, int):
            return fault, {"error": "made_up"}
        if token != f"Bearer {TOKEN}":
            return 401, {"error": "unauthorized"}
        if path.endswith("/heartbeat"):
            self.heartbeats.append(Heartbeat.model_validate_json(body))
            return 200, {"stop_requested": self.is_stop_requested}
        if fault == "error":
            return 503, {"error": "busy"}
        status, answer = self._take(IngestBatch.model_validate_json(body))
        return (500, {"error": "late"}) if fault == "error-after" else (status, answer)

    def _take(self, batch: IngestBatch) -> tuple[int, dict[str, Any]]:
        with self._lock:
            if batch.sequence > self.next_sequence:
                return 409, {
                    "error": "sequence_gap",
                    "message": "",
                    "details": {"expected": self.next_sequence},
                }
            is_new = batch.sequence == self.next_sequence
            if is_new:
                self.events += batch.events
                self.next_sequence += 1
            return 200, {"accepted": is_new, "expected": self.next_sequence}

    def of_kind(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.kind == kind]

    def log_lines(self, stream: str) -> list[str]:
        return [line for event in self.of_kind("log") if event.stream == stream for line in event.lines]


@pytest.fixture
def platform() -> Iterator[Platform]:
    platform = Platform()
    platform.start()
    yield platform
    platform.stop()


@pytest.fixture
def make_platform() -> Iterator[Callable[[], Platform]]:
    """For property tests, which need a fresh one per example."""
    platforms: list[Platform] = []

    def make() -> Platform:
        platforms.append(Platform())
        platforms[-1].start()
        return platforms[-1]

    yield make
    for platform in platforms:
        platform.stop()


@pytest.fixture
def token() -> str:
    return TOKEN


@pytest.fixture
def spec(platform: Platform, tmp_path: Path) -> JobSpec:
    """A spec whose attempt folder is ready, with the token in it."""
    attempt_dir = tmp_path / "attempt-1"
    attempt_dir.mkdir()
    (attempt_dir / "token").write_text(TOKEN)
    spec = JobSpec.model_validate(
        {
            "job_id": "job_test",
            "attempt": 1,
            "name": "test",
            "recipe": "grpo",
            "engine": "verl-ppo",
            "platform": "cpu",
            "gpus": 1,
            "seed": 7,
            "params": {"learning_rate": 0.1, "reward": "gsm8k"},
            "engine_overrides": ["a.b=1"],
            "model": {"model_id": "mdl_a", "path": "/models/a"},
            "row_format": "verl-rl",
            "train_data": {
                "dataset_id": "ds_a",
                "paths": ["/data/a.parquet"],
                "format": "verl-rl",
                "sha256": "0" * 64,
                "row_count": 4,
            },
            "attempt_dir": str(attempt_dir),
            "checkpoint_dir": str(tmp_path / "checkpoints"),
            "ingest_url": platform.url,
            "heartbeat_interval_s": 0.1,
        }
    )
    (attempt_dir / "spec.json").write_text(spec.model_dump_json())
    return spec
