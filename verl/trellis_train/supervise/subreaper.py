"""Run an engine under a subreaper: none of its processes outlives the parent (script, standard library only).

    python -I -S subreaper.py <parent pid> <command> [argument ...]

The subreaper starts the command and leaves as the command leaves: with its exit code, or
by the same signal. It adopts whatever the command's processes orphan, and kills all of
them when the command ends, when it is told to (SIGUSR1), or when its parent dies (the
kernel sends SIGUSR1). SIGTERM is passed on to the command.
"""

import ctypes
import os
import signal
import sys
import time

# Isolated (-I -S) it finds no packages but these two, which are light; in a checkout they lie apart.
sys.path.append(os.path.abspath(__file__).rpartition("/trellis_train/")[0])
sys.path.append(os.path.join(os.path.dirname(sys.path[-1]), "contracts"))
from trellis_contracts.parent_death import die_with

from trellis_train.platform.proxy_exit import leave_like

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_HANDLED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1}
_libc = ctypes.CDLL(None, use_errno=True)


def main(parent_pid: int, command: list[str]) -> int:
    """Run the command; its wait status is returned."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the kernel was told
        return signal.SIGKILL
    engine_pid = _start(command)
    status = _watch(engine_pid)
    _kill_descendants()
    return status


def _start(command: list[str]) -> int:
    parent_pid = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        # Should the subreaper itself be killed, the engine goes with it.
        die_with(parent_pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        os.execvp(command[0], command)  # noqa: S606 - no shell is meant
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127)


def _watch(engine_pid: int) -> int:
    """Wait for the engine, reaping the orphans that come by; its wait status."""
    while True:
        received = signal.sigwait(_HANDLED)
        if received == signal.SIGUSR1:
            os.kill(engine_pid, signal.SIGKILL)
        elif received in (signal.SIGTERM, signal.SIGINT):
            os.kill(engine_pid, signal.SIGTERM)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == engine_pid:
                return status
            if pid == 0:
                break


def _kill_descendants() -> None:
    """Kill children until none is left; grandchildren become children as their parents die."""
    while True:
        for pid in _list_children(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.01)


def _list_children(parent_pid: int) -> list[int]:
    children = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent_pid:
            children.append(int(name))
    return children


if __name__ == "__main__":
    leave_like(main(int(sys.argv[1]), sys.argv[2:]))
