"""A connection between two parts of the platform that can be cut: a TCP relay on the loopback."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Iterator

Address = tuple[str, int]
_CHUNK_BYTES = 65_536
_CONNECT_TIMEOUT_S = 5.0
_POLL_S = 0.1


class Link:
    """Listens on a port of its own and relays to a target, which may move: it is asked for each connection.

    While the link is cut, nothing passes: open connections are reset, and new ones are taken and
    get no answer, as when packets are lost.
    """

    def __init__(self, find_target: Callable[[], Address]) -> None:
        self._find_target = find_target
        self._is_cut = threading.Event()
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._listener.settimeout(_POLL_S)
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, name=f"link-{self.port}", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Break what is connected, and let nothing through from now on."""
        self._is_cut.set()
        self._drop_all()

    def mend(self) -> None:
        """Let everything through again; who waited for an answer has to connect anew."""
        self._drop_all()
        self._is_cut.clear()

    def close(self) -> None:
        """End the relay."""
        self._is_over.set()
        self._listener.close()
        self._drop_all()
        self._thread.join(5)

    def _drop_all(self) -> None:
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):  # the other thread may have closed it
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_over.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return  # closed
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, self._kept(client):
            if self._is_cut.is_set():
                self._swallow(client)
                return
            try:
                server = socket.create_connection(self._find_target(), timeout=_CONNECT_TIMEOUT_S)
            except OSError:
                return  # as the target itself would: the connection is closed
            server.settimeout(None)
            with server, self._kept(server), contextlib.suppress(OSError):
                _pump(client, server)

    def _swallow(self, client: socket.socket) -> None:
        """Read and answer nothing until the other side or the link gives up."""
        with contextlib.suppress(OSError):
            client.settimeout(None)
            while client.recv(_CHUNK_BYTES):
                continue

    @contextlib.contextmanager
    def _kept(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)


def _pump(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes both ways until one side ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, server)
        selector.register(server, selectors.EVENT_READ, client)
        while True:
            for key, _ in selector.select():
                source: socket.socket = key.fileobj  # type: ignore[assignment]
                data = source.recv(_CHUNK_BYTES)
                if not data:
                    return
                key.data.sendall(data)
