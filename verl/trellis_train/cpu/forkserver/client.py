"""Stands for the interpreter of a process that the fork server makes (a script of the standard library).

    python -I -S -B client.py <socket> [option ...] <script> | -c <code> [argument ...]

It hands over its arguments, environment, folder and descriptors, stays as long as the process runs,
passes signals on, and leaves as the process leaves. Where the server is gone or refuses, because
the process needs settings that are read when libraries are loaded, the interpreter itself takes its place.
"""

import json
import os
import signal
import socket
import sys

# Isolated (-I -S) it finds no packages but this one, which is light.
sys.path.append(os.path.abspath(__file__).rpartition("/trellis_train/")[0])
from trellis_train.cpu.forkserver.protocol import Request, is_own, send_request
from trellis_train.platform.proxy_exit import leave_like

#: The folder of the run, with the rules of what its processes may see (``trellis_contracts.isolation``).
_ATTEMPT_DIR = "TRELLIS_ATTEMPT_DIR"
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(address: str, arguments: "list[str]") -> None:
    """Have the process made and leave as it leaves; does not return."""
    # Until it is known to whom they go, signals wait.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    descriptors = _list_descriptors(connection.fileno())
    try:
        connection.connect("\0" + address)
        if not is_own(connection):
            raise PermissionError("it belongs to someone else")
        send_request(connection, Request(arguments, dict(os.environ), os.getcwd(), descriptors))
        answers = connection.makefile("rb")
        first = json.loads(answers.readline() or "{}")
    except OSError as error:
        first = {"refused": f"the fork server cannot be asked: {error}"}
    if "pid" not in first:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _be_the_interpreter(arguments, first.get("refused", "the fork server went away"))
    for number in _PASSED_ON:
        signal.signal(number, lambda received, _: _pass_on(first["pid"], received))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for descriptor in descriptors.values():
        os.close(descriptor)
    last = answers.readline()
    # Without a last word the server is dead, and the kernel has killed what it made.
    leave_like(json.loads(last)["status"] if last else signal.SIGKILL)


def _list_descriptors(connection: int) -> "dict[int, int]":
    """List all open descriptors, except the connection and the one that lists them."""
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    found = {}
    for number in numbers:
        try:
            os.fstat(number)
        except OSError:
            continue
        if number != connection:
            found[number] = number
    return found


def _be_the_interpreter(arguments: "list[str]", reason: str) -> None:
    print(f"started without the fork server: {reason}", file=sys.stderr, flush=True)
    rules = os.path.join(os.environ.get(_ATTEMPT_DIR, "/nowhere"), "isolation.json")
    command = [sys.executable, *arguments]
    if os.path.exists(rules):
        command = [sys.executable, "-P", "-m", "trellis_contracts.isolated", rules, *command]
    os.execv(sys.executable, command)  # noqa: S606 - what was asked for


def _pass_on(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has ended, and the server is about to say so


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
