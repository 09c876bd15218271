"""A host that answers chat completions, for workflows that ask something else than the policy."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from trellis_train.agents.tune import places


@pytest.fixture(autouse=True)
def _unguarded_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's client is the process's: guarded for one endpoint, it would not open those of other tests."""
    monkeypatch.setattr(places, "guard_hub", lambda endpoint: None)


class _Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = self.server_address[1]
        self.asked: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.status = 200
        #: Called when something is asked, before the answer.
        self.on_request: Callable[[], object] = lambda: None


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({"value": 5})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert isinstance(self.server, _Server)
        self.server.asked.append((body, dict(self.headers)))
        self.server.on_request()
        message = {"role": "assistant", "content": "9"}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        self._answer({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    def log_message(self, *_arguments: Any) -> None:
        pass

    def _answer(self, found: dict[str, Any]) -> None:
        content = json.dumps(found).encode()
        assert isinstance(self.server, _Server)
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def _serve() -> Iterator[_Server]:
    server = _Server()
    # Closing waits for one look at whether to go on.
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def chat_server() -> Iterator[_Server]:
    with _serve() as server:
        yield server


@pytest.fixture
def make_chat_server() -> Iterator[Callable[[], _Server]]:
    """For tests that need more than one."""
    with ExitStack() as servers:
        yield lambda: servers.enter_context(_serve())
