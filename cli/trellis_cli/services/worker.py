"""The Celery worker: launches, settles and stops jobs."""

from pathlib import Path

from trellis_contracts.presence import WORKER_KEY_PREFIX

from trellis_cli.services.platform import python_command
from trellis_cli.services.presence import find_absence, find_presence
from trellis_cli.services.service import Service

_APP = "trellis_workers.core.app"


#: Five may be busy for long at the same time, one with each: a data task, a preview, a dry run of rewards,
#: the fetch of a model, a transfer. Two are left for what takes moments: to launch, settle and stop jobs.
PROCESSES = 7


class WorkerService(Service):
    """One worker with a few processes; no task ever waits for a training run."""

    name = "worker"
    grace_s = 15.0

    @property
    def node_name(self) -> str:
        """Unique among all workers that share a broker."""
        return f"trellis-{self.platform.state.instance}@localhost"

    @property
    def temporary_folder(self) -> Path:
        """In the data root: Celery and data tasks that are killed leave theirs."""
        return self.platform.layout.data_root / "tmp" / self.name

    def command(self) -> list[str]:
        return python_command(
            *("-m", "celery", "-A", _APP, "worker"),
            *("--hostname", self.node_name, "--concurrency", str(PROCESSES), "--loglevel", "INFO"),
            # One worker, whose presence shows in a key of ours: nobody reads its gossip and heartbeats.
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        )

    def probe(self) -> str | None:
        return find_presence(self.platform, f"{WORKER_KEY_PREFIX}*", self.pid)

    def find_hang(self) -> str | None:
        return find_absence(self.probe())
