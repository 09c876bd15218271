"""A link passes everything until it is cut."""

import socket
import threading
from collections.abc import Iterator

import pytest
from trellis_tools.chaos.link import Link


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that answers what it is told, in capitals."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(100):
                connection.sendall(data.upper())

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()
    server.close()


@pytest.fixture
def link(echo: tuple[str, int]) -> Iterator[Link]:
    made = Link(lambda: echo)
    yield made
    made.close()


def connect(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=2)


def ask(connection: socket.socket) -> bytes:
    connection.sendall(b"hello")
    return connection.recv(100)


def test_a_link_passes_what_is_said_both_ways(link: Link) -> None:
    with connect(link) as connection:
        assert ask(connection) == b"HELLO"


def test_a_cut_link_breaks_connections_and_answers_new_ones_nothing_until_it_is_mended(link: Link) -> None:
    with connect(link) as before:
        ask(before)
        link.cut()
        assert before.recv(100) == b""
    with connect(link) as meanwhile:
        meanwhile.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(meanwhile)
    link.mend()

    with connect(link) as after:
        assert ask(after) == b"HELLO"


def test_a_link_without_a_target_closes_the_connection(link: Link) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    link._find_target = lambda: address

    with connect(link) as connection:
        assert connection.recv(100) == b""
