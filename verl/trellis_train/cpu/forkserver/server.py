"""Forks processes from one that has imported what they need, for whoever asks as this user.

    python -m trellis_train.cpu.forkserver.server <listening descriptor> <parent pid> <address>
        <modules> <modules with Ray>

An engine's run on Ray is seven processes, and each of them imports torch, vLLM and verl: most of the
processor time of a short run, and most of a gigabyte each. Forked, they share what the first has imported.
Python's own multiprocessing has such a server for functions of its own; this one makes *interpreters*,
which Ray, and multiprocessing's ``spawn``, start by a command line (``client``).

Ray's core reads its settings when it is loaded, the number of its job among them, which a raylet tells its
workers: so the server imports what loads it at the first request, with that request's variables of Ray's.
"""

import contextlib
import gc
import json
import os
import secrets
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from trellis_contracts.parent_death import die_with

from trellis_train.compat.applying import apply
from trellis_train.cpu.changes import FORKING
from trellis_train.cpu.forkserver import process
from trellis_train.cpu.forkserver.protocol import Request, is_own, receive_request

#: A client sends its request at once; one that does not is not waited for.
_REQUEST_TIMEOUT_S = 10.0
CLIENT = Path(__file__).with_name("client.py")


@dataclass(frozen=True)
class ForkServer:
    """A server that runs as long as the process that started it."""

    address: str

    def interpreter(self) -> list[str]:
        """Return the command that replaces ``python``; interpreter arguments may follow."""
        return [sys.executable, "-I", "-S", "-B", str(CLIENT), self.address]

    def shell_command(self) -> str:
        """Return the same command quoted for a shell."""
        return shlex.join(self.interpreter())


def start(modules: Sequence[str], modules_with_ray: Sequence[str] = ()) -> ForkServer:
    """Start a server that imports ``modules`` at once and ``modules_with_ray`` at its first request.

    It can be asked from now on; what asks waits until all is imported.
    """
    address = f"trellis-fork-{os.getpid()}-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # In the abstract namespace (unix(7)) it leaves nothing behind; both ends check whose the other is.
        listener.bind("\0" + address)
        listener.listen(64)
        command = [sys.executable, "-m", __name__, str(listener.fileno()), str(os.getpid()), address]
        subprocess.Popen(  # noqa: S603 - this interpreter and this module
            [*command, ",".join(modules), ",".join(modules_with_ray)],
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
        )
    return ForkServer(address)


def main(arguments: list[str]) -> NoReturn:
    """Serve until the parent ends."""
    descriptor, parent, address, modules, modules_with_ray = arguments
    die_with(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt from a terminal is for the parent
    _import(modules)
    listener = socket.socket(fileno=int(descriptor))
    _Server(listener, ForkServer(address).interpreter(), modules_with_ray).serve()


def _import(modules: str) -> None:
    for name in filter(None, modules.split(",")):
        import_module(name)


class _Server:
    """Connections and the processes that were made for them."""

    def __init__(self, listener: socket.socket, interpreter: list[str], modules_with_ray: str) -> None:
        self._listener = listener
        self._interpreter = interpreter
        self._modules_with_ray = modules_with_ray
        self._is_complete = False
        self._made: dict[int, socket.socket] = {}
        self._loaded = process.settings_of_loading(os.environ)
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker, listener):
            end.setblocking(False)

    def serve(self) -> NoReturn:
        """Answer requests and report ends until this process is killed."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        selector = selectors.DefaultSelector()
        selector.register(self._listener, selectors.EVENT_READ)
        selector.register(self._woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is self._listener:
                    self._answer(selector)
                elif key.fileobj is self._woken:
                    with contextlib.suppress(BlockingIOError):
                        self._woken.recv(1 << 12)
                else:
                    # A client says nothing more: it is dead, and its process goes with it.
                    self._kill(key.data)
                    selector.unregister(key.fileobj)
            self._report_ends(selector)

    def _answer(self, selector: selectors.BaseSelector) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(_REQUEST_TIMEOUT_S)
        try:
            if not is_own(connection):
                raise PermissionError("asked by someone else")
            request = receive_request(connection)
        except (OSError, EOFError, ValueError) as error:
            print(f"the fork server did not take a request: {error}", file=sys.stderr, flush=True)
            connection.close()
            return
        self._complete(request)
        reason = process.find_obstacle(request, self._loaded) or _find_threads()
        if reason is not None:
            _say(connection, refused=reason)
            connection.close()
        else:
            pid = self._fork(request)
            self._made[pid] = connection
            selector.register(connection, selectors.EVENT_READ, data=pid)
            _say(connection, pid=pid)
        for descriptor in request.descriptors.values():
            os.close(descriptor)

    def _complete(self, request: Request) -> None:
        """Import, once, what loads Ray's core."""
        if self._is_complete:
            return
        self._is_complete = True
        of_ray = {name: value for name, value in request.environment.items() if name.startswith("RAY_")}
        os.environ.update(of_ray)
        self._loaded = process.settings_of_loading(os.environ)
        apply(FORKING)
        _import(self._modules_with_ray)
        gc.collect()
        gc.freeze()  # a collection would write to every object, and so copy its page

    def _fork(self, request: Request) -> int:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            die_with(server)
            process.run(request, self._interpreter)
        return pid

    def _kill(self, pid: int) -> None:
        if pid in self._made:
            os.kill(pid, signal.SIGKILL)

    def _report_ends(self, selector: selectors.BaseSelector) -> None:
        while self._made:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = self._made.pop(pid)
            if connection in selector.get_map():
                selector.unregister(connection)
            _say(connection, status=status)
            connection.close()


def _find_threads() -> str | None:
    """Find other Python threads, which make a fork unsafe; threads of libraries recover by themselves."""
    if threading.active_count() == 1:
        return None
    names = ", ".join(thread.name for thread in threading.enumerate())
    return f"what was imported has started threads: {names}"


def _say(connection: socket.socket, **said: int | str) -> None:
    """Tell the client; one that is dead hears nothing."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
