"""A real API process on SQLite in a folder of its own, without workers and without Ray.

Jobs that are launched here stay queued, which is what measuring the API needs.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs import service
from trellis_cli.client import ApiClient
from trellis_cli.demo.starter import make_starter
from trellis_cli.errors import Problem
from trellis_cli.services.platform import python_command
from trellis_cli.services.ports import pick_free
from trellis_cli.waiting import wait_for_dataset

#: Of the API and of the first dataset, on a busy machine.
START_TIMEOUT_S = 180.0


@dataclass
class LightPlatform:
    """The running API with one model and one dataset."""

    settings: Settings
    client: ApiClient
    model: str
    dataset: str
    environment: dict[str, str]
    #: The process of the API.
    api_pid: int

    def carry_out_data_tasks(self) -> None:
        """Carry out the pending data tasks, as the workers would."""
        command = python_command("-m", "trellis_workers.data.once")
        subprocess.run(command, env=self.environment, check=True)  # noqa: S603

    def job_request(self, **changes: Any) -> dict[str, Any]:
        """Build a job request that the API accepts."""
        request = {
            "name": "benchmark",
            "recipe": "grpo",
            "preset": "cpu-tiny",
            "model": self.model,
            "dataset": self.dataset,
        }
        return request | changes

    def launch_without_training(self) -> tuple[str, str]:
        """Create a job and claim it as a worker does; return its id (state LAUNCHING) and ingest token."""
        job = self.client.post("/jobs", self.job_request())
        return job["id"], self.claim(job["id"])

    def claim(self, job_id: str) -> str:
        """Take a queued job as a worker does before it launches it; its ingest token."""
        database = Database(self.settings)
        try:
            with database.write() as session:
                claim = service.claim_for_launch(session, job_id=job_id)
        finally:
            database.dispose()
        if claim is None:
            raise Problem(f"job {job_id} could not be claimed")
        return claim.token


@contextmanager
def light_platform() -> Iterator[LightPlatform]:
    """Start it, fill it, and take it away again."""
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        root = Path(folder)
        (port,) = pick_free(1)
        settings = Settings(data_root=root, port=port, database_url=None, redis_url=None, public_url=None)
        env = {name: value for name, value in os.environ.items() if not name.startswith("TRELLIS_")}
        env |= {"TRELLIS_DATA_ROOT": folder, "TRELLIS_PORT": str(port)}
        subprocess.run(python_command("-m", "trellis_api.migrate"), env=env, check=True)  # noqa: S603
        command = python_command(
            *("-m", "uvicorn", "trellis_api.main:create_app", "--factory", "--port", str(port)),
            *("--no-access-log", "--log-level", "warning"),
        )
        with (
            (root / "api.log").open("wb") as log,
            subprocess.Popen(command, env=env, stdout=log, stderr=log) as api,  # noqa: S603
        ):
            try:
                _wait_for(f"http://127.0.0.1:{port}/readyz", root / "api.log")
                client = ApiClient(f"http://127.0.0.1:{port}", settings.admin_token_path.read_text().strip())
                make_starter(root / "starter", 1)
                source = {"kind": "local", "path": "starter/model"}
                model = client.post("/models", {"name": "starter", "source": source})["id"]
                data = root / "starter" / "data" / "rl_train.jsonl"
                dataset = client.upload("/datasets", data, {"name": "addition"})["id"]
                running = LightPlatform(settings, client, model, dataset, env, api.pid)
                running.carry_out_data_tasks()
                wait_for_dataset(client, dataset, timeout_s=START_TIMEOUT_S)
                yield running
            finally:
                api.terminate()


def _wait_for(url: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=1.0).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise Problem("the API did not start: " + log.read_text()[-2000:])
