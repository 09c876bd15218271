"""Start, recognise and end detached processes, without ever touching one that is not ours.

A pid alone proves nothing: it is reused after a crash or a reboot. Every record therefore carries the
boot and the kernel's start time of the process, and every descendant carries the platform's id in its
environment, so that processes which detached themselves (Ray's) are found too.
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


@dataclass(frozen=True)
class ProcessIdentity:
    """A pid that cannot be mistaken for a later process with the same number."""

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """The identity of a running process, or None where there is none (a zombie is none)."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The command's name is in parentheses and may hold spaces; the fields after it are fixed.
        fields = stat[stat.rindex(")") + 2 :].split()
        if fields[0] in "ZX":
            return None
        return cls(pid, int(fields[19]), _BOOT_ID.read_text().strip())

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
    """The process of a pid file if it still runs, else None."""
    try:
        pid, start_ticks, boot_id = path.read_text().split()
        identity = ProcessIdentity(int(pid), int(start_ticks), boot_id)
    except (FileNotFoundError, ValueError):
        return None
    return identity if identity.is_alive else None


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
        raise ProcessLookupError(f"{command[0]} ended at once; see {log_path}")
    return identity


def marked(mark_prefix: str) -> Iterator[ProcessIdentity]:
    """Every process whose environment carries a mark that starts so."""
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


def end(leader: ProcessIdentity | None, mark: str, *, grace_s: float) -> int:
    """Ask the leader to end, wait, then kill what is left under the mark; the answer counts the killed."""
    if leader is not None:
        leader.send(signal.SIGTERM)
        wait_until_gone([leader], grace_s)
    left = list(marked(mark))
    if leader is None:
        for process in left:
            process.send(signal.SIGTERM)
    # The leader's own children are given a moment to follow it.
    wait_until_gone(left, grace_s if leader is None else 3.0)
    killed = 0
    # A second look: a process that was being born during the first is not missed.
    for _ in range(2):
        left = []
        for process in marked(mark):
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
