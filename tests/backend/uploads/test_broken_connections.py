"""Uploads over a real server and real sockets, which break."""

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import Settings
from trellis_api.main import create_app
from trellis_api.uploads import receiving

CONTENT = os.urandom(3_000_000)
#: What uvicorn and the handler hold between the socket and the file: twice the 64 KiB of its high-water mark.
BUFFERED_BYTES = 131_072
TUS = {"Tus-Resumable": "1.0.0"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of the API on a port of its own."""
    settings = Settings(data_root=tmp_path, database_url=None, redis_url=None, min_free_disk_bytes=0)
    upgrade(settings)
    app = create_app(settings)
    token = ensure_admin_token(app.state.database, path=settings.admin_token_path)
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    headers = {"Authorization": f"Bearer {token}", **TUS}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
        yield client
    running.should_exit = True
    thread.join(10)


def begin(server: httpx.Client) -> str:
    answer = server.post("/api/v1/uploads", headers={"Upload-Length": str(len(CONTENT))})
    assert answer.status_code == 201, answer.text
    return str(answer.headers["Location"])


def open_piece(server: httpx.Client, place: str, offset: int, size: int, *more: str) -> socket.socket:
    address = urlsplit(str(server.base_url))
    assert address.hostname is not None
    assert address.port is not None
    connection = socket.create_connection((address.hostname, address.port), timeout=10)
    lines = (
        f"PATCH {place} HTTP/1.1",
        "Host: x",
        f"Authorization: {server.headers['Authorization']}",
        "Tus-Resumable: 1.0.0",
        f"Upload-Offset: {offset}",
        f"Content-Length: {size}",
        "Content-Type: application/offset+octet-stream",
        *more,
    )
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return connection


def offset_of(server: httpx.Client, place: str) -> int:
    return int(server.head(place).headers["Upload-Offset"])


def wait_for_offset(server: httpx.Client, place: str, at_least: int) -> None:
    deadline = time.monotonic() + 10
    while offset_of(server, place) < at_least:
        assert time.monotonic() < deadline, f"{offset_of(server, place)}, not {at_least} bytes"
        time.sleep(0.02)


def send_rest(server: httpx.Client, place: str) -> httpx.Response:
    """The rest of the file, once the server has noticed that the connection before is gone."""
    deadline = time.monotonic() + 10
    while True:
        start = offset_of(server, place)
        headers = {"Upload-Offset": str(start), "Content-Type": "application/offset+octet-stream"}
        answer = server.patch(place, content=CONTENT[start:], headers=headers)
        if answer.status_code not in (409, 423) or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


def test_a_piece_that_breaks_off_keeps_what_arrived(server: httpx.Client) -> None:
    place = begin(server)
    with open_piece(server, place, 0, len(CONTENT)) as connection:
        connection.sendall(CONTENT[:1_700_000])
    # What the server had not taken out of its buffers when the connection ended is sent again.
    wait_for_offset(server, place, 1_700_000 - BUFFERED_BYTES)

    assert send_rest(server, place).status_code == 204
    assert server.get(place).json()["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def test_a_piece_with_a_checksum_that_breaks_off_leaves_nothing(server: httpx.Client) -> None:
    place = begin(server)
    header = "Upload-Checksum: sha256 " + "A" * 43 + "="
    with open_piece(server, place, 0, len(CONTENT), header) as connection:
        connection.sendall(CONTENT[:1_700_000])
        time.sleep(0.2)
        assert offset_of(server, place) == 0

    assert send_rest(server, place).status_code == 204
    assert server.get(place).json()["is_complete"] is True


def test_a_dead_connection_gives_the_upload_free(
    server: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "STALL_TIMEOUT_S", 0.5)
    place = begin(server)
    with open_piece(server, place, 0, len(CONTENT)) as connection:
        connection.sendall(CONTENT[:100_000])
        time.sleep(0.1)
        headers = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        assert server.patch(place, content=b"x", headers=headers).status_code == 423

        answer = connection.recv(1000)  # the server gives up; nobody has closed anything

    assert answer.startswith(b"HTTP/1.1 408")
    assert offset_of(server, place) == 100_000
    assert send_rest(server, place).status_code == 204
    assert server.get(place).json()["sha256"] == hashlib.sha256(CONTENT).hexdigest()
