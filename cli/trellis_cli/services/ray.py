"""The cluster: a Ray head of our own on this machine, or one that TRELLIS_RAY_ADDRESS names."""

import os
import shutil
from pathlib import Path

import httpx
import psutil
from trellis_recipes.placement import head_cpus

from trellis_cli.services.layout import settle_ray_ports
from trellis_cli.services.platform import python_command
from trellis_cli.services.service import Service, open_client

GIB = 1024**3
#: Folders of earlier heads, kept for their logs.
KEPT_SESSIONS = 2
#: Below Ray's own folder, whose name leaves room for sockets.
TEMPORARY = "tmp"


class RayService(Service):
    """The Ray head with its Jobs API."""

    name = "ray"
    is_told_addresses = False
    start_timeout_s = 240.0
    grace_s = 20.0
    # On a machine that is short of everything it answers late, and its end is the end of every run.
    hangs_after_s = 300.0
    # The head gives up when its raylet has not registered within 30 s, a constant of ray/_private/node.py
    # (2.60) that busy cores exceed now and then.
    start_attempts = 3

    @property
    def is_external(self) -> bool:
        return self.platform.external_ray_address is not None

    def settle(self) -> None:
        settle_ray_ports(self.platform.state, self.patience_s)

    @property
    def temporary_folder(self) -> Path | None:
        """Below Ray's own folder, whose name leaves room for sockets; for its jobs, too."""
        return None if self.is_external else self.platform.layout.ray_temp_dir() / TEMPORARY

    def prepare(self) -> None:
        super().prepare()
        self.platform.layout.ray_token()
        sessions = sorted(self.platform.layout.ray_temp_dir().glob("session_2*"), reverse=True)
        for session in sessions[KEPT_SESSIONS:]:
            shutil.rmtree(session, ignore_errors=True)

    def command(self) -> list[str]:
        platform, ports = self.platform, self.platform.state.ray_ports
        options = {
            "node-ip-address": "127.0.0.1",
            "port": ports["gcs"],
            "dashboard-host": "127.0.0.1",
            "dashboard-port": ports["dashboard"],
            "dashboard-agent-listen-port": ports["dashboard_agent"],
            "dashboard-agent-grpc-port": ports["dashboard_agent_grpc"],
            "runtime-env-agent-port": ports["runtime_env_agent"],
            "object-manager-port": ports["object_manager"],
            "node-manager-port": ports["node_manager"],
            "metrics-export-port": ports["metrics_export"],
            "num-cpus": self.logical_cpus(),
            "num-gpus": platform.settings.total_slots,
            "object-store-memory": object_store_bytes(),
            "temp-dir": platform.layout.ray_temp_dir(),
        }
        # The head needs the dashboard's process for the Jobs API.
        flags = ["--head", "--block", "--include-dashboard=true", "--disable-usage-stats"]
        return python_command(
            "-m",
            "trellis_cli.services.ray_head",
            "start",
            *flags,
            *(f"--{name}={value}" for name, value in options.items()),
        )

    def logical_cpus(self) -> int:
        """Return the CPUs that the head declares: enough for all jobs that the platform runs at once.

        With as many as a small machine really has, a run would wait for them for ever.
        """
        settings = self.platform.settings
        return head_cpus(
            settings.total_slots,
            exports=settings.max_exports,
            evaluations=settings.max_evaluations,
            endpoints=settings.max_endpoints,
        )

    def probe(self) -> str | None:
        headers = {}
        if not self.is_external:
            headers["Authorization"] = f"Bearer {self.platform.layout.ray_token()}"
        elif token := os.environ.get("RAY_AUTH_TOKEN"):
            headers["Authorization"] = f"Bearer {token}"
        try:
            self._ask("/api/jobs/", headers)
            nodes = self._ask("/nodes?view=summary", headers).json()["data"]["summary"]
        except (httpx.HTTPError, KeyError, ValueError) as error:
            return f"the Jobs API does not respond: {error}"
        is_alive = any(node.get("raylet", {}).get("state") == "ALIVE" for node in nodes)
        return None if is_alive else "no node has joined the cluster yet"

    def _ask(self, path: str, headers: dict[str, str]) -> httpx.Response:
        url = f"{self.platform.ray_dashboard_url}{path}"
        return open_client().get(url, headers=headers, timeout=3.0).raise_for_status()

    def describe(self) -> str:
        kind = "external, " if self.is_external else ""
        return f"{kind}{self.platform.ray_address}, {self.platform.settings.total_slots} slot(s)"


def object_store_bytes() -> int:
    """Return the size of Ray's object store: a tenth of the memory, at most 30 % of /dev/shm, min. 100 MB.

    The engine's weights and batches travel beside it, so it must leave them room.
    """
    memory: int = psutil.virtual_memory().total // 10
    shared = int(shutil.disk_usage("/dev/shm").total * 0.3) if os.path.isdir("/dev/shm") else memory  # noqa: S108
    return max(100 * 1024**2, min(memory, shared, 16 * GIB))
