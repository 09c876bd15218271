"""Start, recognise and end detached processes, without ever touching one that is not ours.

A pid alone proves nothing: it is reused after a crash or a reboot. Every record therefore carries the
boot and the kernel's start time of the process, and every descendant carries the platform's id in its
environment, so that processes which detached themselves are found too. Some of Ray's processes write their
title over their environment: those are known by the session that their leader began.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Environment variable that marks every process of a platform: "<instance id>:<service>".
MARK = "TRELLIS_SERVICE_MARK"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
#: Places in /proc/<pid>/stat, counted behind the command's name.
_SESSION, _START_TICKS = 3, 19


@dataclass(frozen=True)
class ProcessIdentity:
    """A pid that cannot be mistaken for a later process with the same number."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """Return the identity of a running process, or None if there is none (or only a zombie)."""
        fields = _read_stat(pid)
        if fields is None or fields[0] in "ZX":
            return None
        return cls(pid, int(fields[_START_TICKS]), _BOOT_ID.read_text().strip())

    @property
    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        return ProcessIdentity.of(self.pid) == self

    def send(self, signal_number: int) -> None:
        """Signal the process if it is still the same one."""
        if self.is_alive:
            try:
                os.kill(self.pid, signal_number)
            except ProcessLookupError:
                return


def write_record(path: Path, identity: ProcessIdentity) -> None:
    """Keep an identity as a pid file; the pid is alone on its first line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{identity.pid}\n{identity.start_ticks}\n{identity.boot_id}\n")


def read_record(path: Path) -> ProcessIdentity | None:
    """Read a pid file; return its process if it is still running, else None."""
    identity = read_last_record(path)
    return identity if identity is not None and identity.is_alive else None


def read_last_record(path: Path) -> ProcessIdentity | None:
    """Read the process of a pid file, whether or not it is still running."""
    try:
        pid, start_ticks, boot_id = path.read_text().split()
        return ProcessIdentity(int(pid), int(start_ticks), boot_id)
    except (FileNotFoundError, ValueError):
        return None


def start_detached(
    command: Sequence[str], *, env: Mapping[str, str], log_path: Path, cwd: Path
) -> ProcessIdentity:
    """Start a process that outlives this one: own session, no terminal, output appended to its log."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        child = subprocess.Popen(  # noqa: S603 - commands are built by the services, never from a request
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            close_fds=True,
        )
    identity = ProcessIdentity.of(child.pid)
    # Popen would warn that its child is still running when this object is collected: that is the purpose.
    child.returncode = 0
    if identity is None:
        raise ProcessLookupError(f"{command[0]} exited immediately; see {log_path}")
    return identity


def marked(mark_prefix: str) -> Iterator[ProcessIdentity]:
    """Find every process whose environment contains a mark that starts so."""
    needle = f"{MARK}={mark_prefix}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = Path(entry.path, "environ").read_bytes()
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue
        if environ.startswith(needle) or b"\0" + needle in environ:
            identity = ProcessIdentity.of(int(entry.name))
            if identity is not None:
                yield identity


def in_session(leader: ProcessIdentity, folder: Path) -> Iterator[ProcessIdentity]:
    """Find every process of the session of a leader, dead or alive, that works below the folder.

    The kernel gives the leader's pid to nobody else while its session has a process; when it has none,
    a stranger may get that pid and begin a session. The boot, the start and the folder tell them apart.
    """
    if leader.boot_id != _BOOT_ID.read_text().strip():
        return
    holder = ProcessIdentity.of(leader.pid)
    if holder is not None and holder != leader:
        return
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        fields = _read_stat(int(entry.name))
        if fields is None or fields[0] in "ZX" or int(fields[_SESSION]) != leader.pid:
            continue
        try:
            works_in = Path(os.readlink(Path(entry.path, "cwd")))
        except OSError:  # somebody else's, or gone
            continue
        start_ticks = int(fields[_START_TICKS])
        if start_ticks >= leader.start_ticks and works_in.is_relative_to(folder):
            yield ProcessIdentity(int(entry.name), start_ticks, leader.boot_id)


def _read_stat(pid: int) -> list[str] | None:
    """Read the fields after the command's name in /proc/PID/stat; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses and may hold spaces; the fields after it are fixed.
    return stat[stat.rindex(")") + 2 :].split()


def end(
    leader: ProcessIdentity | None,
    mark: str,
    *,
    grace_s: float,
    last: ProcessIdentity | None = None,
    folder: Path | None = None,
) -> int:
    """Ask the leader to end, wait, then kill what is left; the answer counts the killed.

    What is left bears the mark, or is in the session of ``last``, the leader that ran last, and works
    below the folder.
    """

    def find_left() -> list[ProcessIdentity]:
        found = set(marked(mark))
        if last is not None and folder is not None:
            found |= set(in_session(last, folder))
        return list(found)

    if leader is not None:
        leader.send(signal.SIGTERM)
        wait_until_gone([leader], grace_s)
    left = find_left()
    if leader is None:
        for process in left:
            process.send(signal.SIGTERM)
    # The leader's own children are given a moment to follow it.
    wait_until_gone(left, grace_s if leader is None else 3.0)
    killed = 0
    # A second look: a process that was being born during the first is not missed.
    for _ in range(2):
        left = []
        for process in find_left():
            process.send(signal.SIGKILL)
            left.append(process)
        wait_until_gone(left, 2.0)
        killed += len(left)
    return killed


def wait_until_gone(processes: Sequence[ProcessIdentity], timeout_s: float) -> bool:
    """Wait for processes to end; False when some are left."""
    deadline = time.monotonic() + timeout_s
    while True:
        if not any(process.is_alive for process in processes):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
