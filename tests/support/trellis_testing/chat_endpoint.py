"""A chat endpoint (OpenAI's protocol) on this machine that stands in for a model."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Status, and the text of the reply.
Answer = tuple[int, str]


class ChatEndpoint:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        #: Given first, one after the other.
        self.answers: list[Answer] = []
        self.default: Answer = (200, '{"score": 5}')
        #: What the question is answered with, in the place of the default.
        self.reply_to: Callable[[str], Answer] | None = None
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.delay_s = 0.0
        self.usage: dict[str, int] | None = {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
        }
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def questions(self) -> list[str]:
        """The last thing that was asked, request by request."""
        return [request["messages"][-1]["content"] for request in self.requests]

    def answer(self, request: dict[str, Any]) -> Answer:
        """Note a request and decide what it gets."""
        self.requests.append(request)
        self.times.append(time.monotonic())
        time.sleep(self.delay_s)
        if self.answers:
            return self.answers.pop(0)
        if self.reply_to is not None:
            return self.reply_to(request["messages"][-1]["content"])
        return self.default

    def serve(self) -> None:
        """Answer until ``stop``."""
        self._server.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    #: A batch of responses is judged at once.
    request_queue_size = 128
    daemon_threads = True


@contextlib.contextmanager
def running_chat_endpoint() -> Iterator[ChatEndpoint]:
    """Run an endpoint that answers while the context lasts."""
    endpoint = ChatEndpoint()
    threading.Thread(target=endpoint.serve, daemon=True).start()
    try:
        yield endpoint
    finally:
        endpoint.stop()


def _handler_of(endpoint: ChatEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, text = endpoint.answer({**body, "authorization": self.headers["Authorization"]})
            reply = _as_completion(text, endpoint.usage) if status == 200 else {"error": {"message": text}}
            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _as_completion(text: str, usage: dict[str, int] | None) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": usage,
    }
