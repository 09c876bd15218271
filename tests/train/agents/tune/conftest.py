"""A host that answers chat completions, for workflows that ask something else than the policy."""

import json
import threading
from collections.abc import Iterator
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


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({"value": 5})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert isinstance(self.server, _Server)
        self.server.asked.append((body, dict(self.headers)))
        message = {"role": "assistant", "content": "9"}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        self._answer({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    def log_message(self, *_arguments: Any) -> None:
        pass

    def _answer(self, found: dict[str, Any]) -> None:
        content = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def chat_server() -> Iterator[_Server]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
