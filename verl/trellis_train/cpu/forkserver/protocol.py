"""What an interpreter that is asked for sends to the fork server, and hears from it (standard library only).

One connection a process. The client sends a :class:`Request` as JSON behind its length, with its open
descriptors (unix(7), SCM_RIGHTS); the server answers with lines of JSON: ``{"pid": ...}`` once the process
runs, or ``{"refused": ...}`` with the reason, and in the end ``{"status": ...}``, a wait status.
"""

import array
import json
import os
import socket
import struct

#: Of the message that asks for a process: its length in bytes.
_LENGTH = struct.Struct("!I")
#: More than any process is started with; the kernel allows 253 in one message.
_MOST_DESCRIPTORS = 64
#: Options of the interpreter that a forked process has anyway (-B, -s, -I), or is given (-u).
OPTIONS = ("-B", "-I", "-s", "-S", "-E", "-u")


class Request:
    """A process that is asked for: the interpreter's arguments, its environment, folder and descriptors."""

    def __init__(
        self,
        arguments: "list[str]",
        environment: "dict[str, str]",
        folder: str,
        descriptors: "dict[int, int]",
    ) -> None:
        """Store the request; ``descriptors`` maps each number in the process to its number here."""
        self.arguments = arguments
        self.environment = environment
        self.folder = folder
        self.descriptors = descriptors


def send_request(connection: socket.socket, request: Request) -> None:
    """Send it with its descriptors."""
    numbers = list(request.descriptors)
    if len(numbers) > _MOST_DESCRIPTORS:
        raise ValueError(f"{len(numbers)} open descriptors, at most {_MOST_DESCRIPTORS} can be handed over")
    body = json.dumps(
        {
            "arguments": request.arguments,
            "environment": request.environment,
            "folder": request.folder,
            "descriptors": numbers,
        }
    ).encode()
    held = array.array("i", [request.descriptors[number] for number in numbers])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, held.tobytes())]
    sent = connection.sendmsg([_LENGTH.pack(len(body))], rights)
    if sent != _LENGTH.size:
        raise OSError("the request's length was not taken")
    connection.sendall(body)


def receive_request(connection: socket.socket) -> Request:
    """Receive a request with its open file descriptors; EOFError if the client disconnected."""
    held = array.array("i")
    head, rights, _, _ = connection.recvmsg(
        _LENGTH.size, socket.CMSG_SPACE(_MOST_DESCRIPTORS * held.itemsize)
    )
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            held.frombytes(data[: len(data) - len(data) % held.itemsize])
    try:
        if len(head) != _LENGTH.size:
            raise EOFError("no request came")
        body = json.loads(_receive(connection, _LENGTH.unpack(head)[0]))
    except BaseException:
        for descriptor in held:
            os.close(descriptor)
        raise
    numbers = dict(zip(body["descriptors"], held, strict=True))
    return Request(body["arguments"], body["environment"], body["folder"], numbers)


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 16))
        if not part:
            raise EOFError("the request broke off")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def is_own(connection: socket.socket) -> bool:
    """Tell whether the other end belongs to this process's user (SO_PEERCRED)."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())
