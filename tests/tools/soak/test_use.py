"""What is done to a platform while its memory is watched, against one that says the least."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from trellis_cli.client import ApiClient
from trellis_cli.services.supervisor import Supervisor
from trellis_testing.waiting import wait_until
from trellis_tools.soak.command import sample
from trellis_tools.soak.use import Use

REQUEST = {"name": "soak", "model": "mdl_1", "dataset": "ds_1"}


class Handler(BaseHTTPRequestHandler):
    """Answers every path; jobs are there from the start."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # head and body in one packet: a client need not wait for the second
    asked: ClassVar[Counter[str]]
    refuses = False

    def answer(self, body: Any, status: int = 200, kind: str = "application/json") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked[f"GET {re.sub('(job|task)_[0-9]+', 'ID', path)}"] += 1
        if self.refuses:
            self.answer({"message": "busy"}, status=503)
        elif path.endswith("/events"):
            self.answer(b'id: 1\nevent: state\ndata: {"state": "running"}\n\n', kind="text/event-stream")
        elif path.endswith("/data-tasks/task_1"):
            self.answer({"id": "task_1", "state": "succeeded"})
        else:
            self.answer({"items": [{"id": "job_1"}] if path.endswith("/jobs") else []})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked[f"POST {re.sub('job_[0-9]+', 'ID', self.path)}"] += 1
        is_task = self.path.endswith("/tokens")
        self.answer({"id": "task_1" if is_task else "job_2", "state": "queued"}, status=201)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def served() -> Iterator[tuple[str, type[Handler]]]:
    class Own(Handler):
        asked: ClassVar[Counter[str]] = Counter()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", Own
    server.shutdown()
    server.server_close()


def test_pages_streams_jobs_and_tokens_are_all_used(served: tuple[str, type[Handler]]) -> None:
    url, handler = served
    use = Use(ApiClient(url, "token"), REQUEST, seed=1)

    use.start()
    wanted = ("pages", "streams", "jobs", "jobs stopped", "tokens succeeded")
    wait_until(lambda: all(use.done[name] for name in wanted), 10, "all of it is done")
    use.stop()

    assert not use.refused
    for request in (
        "GET /api/v1/jobs/ID/events",
        "GET /api/v1/datasets/ds_1/rows",
        "POST /api/v1/jobs/preview",
        "POST /api/v1/jobs/ID/stop",
        "POST /api/v1/datasets/ds_1/rows/tokens",
    ):
        assert handler.asked[request] > 0


def test_what_is_refused_is_counted_and_gone_over(served: tuple[str, type[Handler]]) -> None:
    url, handler = served
    handler.refuses = True
    use = Use(ApiClient(url, "token"), REQUEST, seed=1)

    use.start()
    wait_until(lambda: use.refused["open_pages: 503"] > 1, 10, "it goes on")
    use.stop()

    assert use.done["pages"] == 0


def test_the_memory_of_a_service_with_its_processes_is_sampled(
    make_supervisor: Callable[..., Supervisor], tmp_path: Path
) -> None:
    supervisor = make_supervisor(tmp_path)
    supervisor.up()

    (sampled,) = sample(supervisor).items()

    assert sampled[0] == "redis"
    assert 2**20 < sampled[1] < 2**30
    supervisor.down()
    assert sample(supervisor) == {"redis": 0}
