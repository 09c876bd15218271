"""What the supervisor needs to know of a service."""

import shutil
from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path

import httpx
from trellis_contracts.temporary import keep_compiled

from trellis_cli.services.platform import Platform
from trellis_cli.services.process import ProcessIdentity, end, read_last_record, read_record

#: A killed process keeps its port until its last thread has left the kernel, which a busy disk delays.
_DYING_TIMEOUT_S = 10.0


@cache
def open_client() -> httpx.Client:
    """Return this process's HTTP client; it is shared since creating one reads all certificates (20 ms)."""
    return httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))


class Service(ABC):
    """One process that the platform consists of."""

    #: Name in commands, pid files and logs.
    name: str
    #: How long it may take to answer after its start, and to leave after being asked to.
    start_timeout_s: float = 120.0
    grace_s: float = 10.0
    #: How often it is started when it ends while starting.
    start_attempts: int = 1
    #: For how long it may give no answer before it counts as hung.
    hangs_after_s: float = 60.0
    #: Whether it is told where API, broker and cluster are, and keeps to that for as long as it runs.
    is_told_addresses: bool = True

    def __init__(self, platform: Platform) -> None:
        self.platform = platform

    @property
    def record(self) -> ProcessIdentity | None:
        """Its running process, or None."""
        return read_record(self.platform.layout.pid_path(self.name))

    @property
    def pid(self) -> int | None:
        """The pid of its running process."""
        record = self.record
        return record.pid if record else None

    @property
    def is_external(self) -> bool:
        """Whether somebody else runs it and this platform only attaches."""
        return False

    @property
    def temporary_folder(self) -> Path | None:
        """A folder for temporary files that goes with it, as processes that are killed leave theirs.

        None where it has none of its own.
        """
        return None

    @property
    def patience_s(self) -> float:
        """How long its ports are waited for: an unfinished record tells that it was killed, maybe just now.

        The kernel shows its first thread as ended while others still hold the port.
        """
        return _DYING_TIMEOUT_S if self.platform.layout.pid_path(self.name).exists() else 0.0

    def end(self) -> bool:
        """End it with everything that it started, or what it left when it died; whether anything ran.

        Its temporary files go, too.
        """
        platform, path = self.platform, self.platform.layout.pid_path(self.name)
        leader = self.record
        killed = end(
            leader,
            platform.mark(self.name),
            grace_s=self.grace_s,
            last=read_last_record(path),
            folder=platform.settings.data_root,
        )
        if self.temporary_folder is not None:
            shutil.rmtree(self.temporary_folder, ignore_errors=True)
        return leader is not None or killed > 0

    def settle(self) -> None:  # noqa: B027 - most services have nothing to settle
        """Pick the ports that the service needs; called only while it is not running."""

    def prepare(self) -> None:
        """Write what the service reads at its start, and make its folder for temporary files anew."""
        if self.temporary_folder is not None:
            shutil.rmtree(self.temporary_folder, ignore_errors=True)
            self.temporary_folder.mkdir(mode=0o700, parents=True)

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line that runs the service in the foreground."""

    @abstractmethod
    def probe(self) -> str | None:
        """Ask it whether it works: None, or what is wrong. Returns within about a second."""

    def find_hang(self) -> str | None:
        """Return why the process itself does not answer, or None; a restart would not fix anything else."""
        return self.probe()

    def environment(self) -> dict[str, str]:
        """Return the environment of the service's process."""
        environment = self.platform.environment(self.name)
        if self.temporary_folder is None:
            return environment
        return keep_compiled(environment) | {"TMPDIR": str(self.temporary_folder)}

    def describe(self) -> str:
        """Describe the service's address or size, for the status table."""
        return ""
