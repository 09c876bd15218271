"""Waits outlive a restart of the API, and nothing else; here a server that is away and comes back."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from trellis_cli import waiting
from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem, Refusal
from trellis_cli.waiting import read_patiently


class Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_there = self.path.endswith("/environments/env_1")
        body = json.dumps({"state": "ready"} if is_there else {"message": "not there"}).encode()
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """The test's output stays its own."""


@contextmanager
def serving(port: int) -> Iterator[None]:
    with HTTPServer(("127.0.0.1", port), Api) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_an_api_that_is_away_for_a_moment_is_waited_for(port: int) -> None:
    client = ApiClient(f"http://127.0.0.1:{port}", "token")
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.append(read_patiently(client, "/environments/env_1")))
    reader.start()
    reader.join(0.5)
    assert reader.is_alive()
    with serving(port):
        reader.join(20)
    assert found == [{"state": "ready"}]


def test_patience_has_an_end(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_PATIENCE_S", 0.4)
    with pytest.raises(Problem) as caught:
        read_patiently(ApiClient(f"http://127.0.0.1:{port}", "token"), "/environments/env_1")
    assert caught.value.exit_code == ExitCode.UNREACHABLE


def test_a_refusal_is_told_at_once(port: int) -> None:
    with serving(port), pytest.raises(Refusal, match="not there"):
        read_patiently(ApiClient(f"http://127.0.0.1:{port}", "token"), "/environments/env_2")
