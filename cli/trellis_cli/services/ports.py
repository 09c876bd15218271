"""Free ports, and the name of whoever holds a taken one."""

import contextlib
import errno
import socket
import time
from collections.abc import Iterable

import psutil


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Servers set this too; without it a port in TIME_WAIT would look taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def wait_until_free(ports: Iterable[int], timeout_s: float, host: str = "127.0.0.1") -> bool:
    """Wait until servers could listen on all ports; return whether that was within the timeout."""
    wanted = list(ports)
    deadline = time.monotonic() + timeout_s
    while not all(is_free(port, host) for port in wanted):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def pick_free(count: int) -> list[int]:
    """Pick different ports that are free now, from the kernel's range."""
    picked: list[int] = []
    with contextlib.ExitStack() as held:
        for _ in range(count):
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.bind(("127.0.0.1", 0))
            picked.append(probe.getsockname()[1])
    return picked


def holder_of(port: int) -> str:
    """Describe who listens on a port: "nginx (pid 812)", or "another process" if it is not visible."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        connections = []
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or not connection.laddr or not connection.pid:
            continue
        if connection.laddr.port == port:
            try:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
            except psutil.Error:
                return f"pid {connection.pid}"
    return "another process"
