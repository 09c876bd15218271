"""Chat requests of a campaign: how each ended, against a server that answers as the API or breaks off."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from trellis_cli.client import ApiClient
from trellis_testing.waiting import wait_until
from trellis_tools.chaos.chats import Chats

PIECE = b'data: {"choices": [{"delta": {"content": "4"}}]}\n\n'
WHOLE = json.dumps({"choices": [{"message": {"content": "42"}}]}).encode()
LOST = b'data: {"error": {"code": "engine_lost", "message": "It exited."}}\n\n'
FAILED = json.dumps({"error": {"code": "endpoint_failed", "message": "It died."}}).encode()


class Server(ThreadingHTTPServer):
    """Answers each request with what it was given: a status and the bytes behind it."""

    status, content, announced = 200, b"", 0
    bodies: list[Any]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(self.server.announced or len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.bodies = []
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def chats(server: Server) -> Chats:
    return Chats(ApiClient(f"http://127.0.0.1:{server.server_address[1]}", "token"), "starter")


@pytest.mark.parametrize(
    ("status", "content", "missing", "is_stream", "outcome"),
    [
        (200, WHOLE, 0, False, "answered"),
        (200, PIECE + b"data: [DONE]\n\n", 0, True, "answered"),
        (503, FAILED, 0, False, "503 endpoint_failed"),
        (503, FAILED, 0, True, "503 endpoint_failed"),
        (502, b"<html>", 0, False, "502 without a code"),
        (200, PIECE + LOST, 0, True, "200 engine_lost"),
        (200, PIECE, 0, True, "cut off"),
        (200, PIECE, 10, True, "cut off"),
        (200, WHOLE[:-4], 4, False, "cut off"),
        (200, b'{"choices": []}', 0, False, "cut off"),
    ],
)
def test_a_request_tells_how_it_ended(
    server: Server,
    chats: Chats,
    *,
    status: int,
    content: bytes,
    missing: int,
    is_stream: bool,
    outcome: str,
) -> None:
    server.status, server.content, server.announced = status, content, len(content) + missing

    chat = chats.ask(is_stream=is_stream)

    assert chat.outcome == outcome
    assert chat.is_answered == (outcome == "answered")
    assert chat.begun_at <= chat.ended_at
    assert (server.bodies[0]["model"], server.bodies[0]["stream"]) == ("starter", is_stream)


def test_an_api_that_is_away_gives_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    assert Chats(ApiClient(f"http://127.0.0.1:{port}", "token"), "starter").ask(is_stream=False).outcome == (
        "no answer"
    )


def test_requests_go_on_until_they_are_stopped(server: Server, chats: Chats) -> None:
    server.content = PIECE + b"data: [DONE]\n\n"

    chats.start()
    wait_until(lambda: len(chats.list()) >= 2, 10, "both have been answered")
    chats.stop()

    count = len(server.bodies)
    assert {body["stream"] for body in server.bodies} == {False, True}
    assert len(chats.list()) == count
    assert chats.is_answered_since(0.0)
    assert not chats.is_answered_since(max(chat.begun_at for chat in chats.list()) + 1)
