"""A real Ray head, a real Redis and a database of their own for the workers' tests.

Only the training is replaced (``trellis_testing.stub_cluster``).
"""

import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trellis_api.wiring  # noqa: F401
from sqlmodel import Session
from trellis_api import tables
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.jobs import repository
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_cli.services.ports import pick_free
from trellis_cli.services.redis import find_redis_server
from trellis_testing.datasets import add_dataset
from trellis_testing.stub_cluster import RayHead, end_process, running_head
from trellis_testing.waiting import wait_until


@dataclass
class RedisServer:
    """A Redis that keeps nothing on disk, so that a restart empties it."""

    port: int = field(default_factory=lambda: pick_free(1)[0])
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [
            find_redis_server(),
            "--port",
            str(self.port),
            "--save",
            "",
            "--appendonly",
            "no",
            "--bind",
            "127.0.0.1",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        wait_until(self._is_listening, 30, "Redis listens")

    def stop(self) -> None:
        if self.process is not None:
            end_process(self.process, signal.SIGKILL)

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="session")
def ray_head() -> Iterator[RayHead]:
    """A cluster of one machine with four GPUs that are logical."""
    with running_head("--num-cpus=8", "--num-gpus=4") as head:
        yield head


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.stop()


@dataclass
class Installation:
    """A platform without its API: settings, database and files."""

    settings: Settings
    database: Database
    environment: dict[str, str]

    def read(self) -> Any:
        return self.database.read()

    def write(self) -> Any:
        return self.database.write()

    def add_job(self, **values: Any) -> Job:
        """A queued job that can be launched."""
        job = Job(
            **{
                "id": new_id("job"),
                "name": "test",
                "recipe": "grpo",
                "model_id": "mdl_aaaaaaaaaaaa",
                "dataset_id": "ds_aaaaaaaaaaaa",
                **values,
            }
        )
        with self.write() as session:
            repository.add_job(session, job=job, tags=[])
        return self.get_job(job.id)

    def get_job(self, job_id: str) -> Job:
        with self.read() as session:
            job = repository.find_job(session, job_id=job_id)
        assert job is not None
        return job

    def attempt_dir(self, job: Job) -> Path:
        return self.settings.attempt_dir(job.id, job.attempt)

    def list_starts(self) -> list[str]:
        """Every start of a run, as the runs themselves noted it."""
        path = self.settings.data_root.with_suffix(".starts")
        return path.read_text().split() if path.exists() else []

    def end_run(self, job: Job, exit_code: int) -> None:
        (self.attempt_dir(job) / "exit").write_text(str(exit_code))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Installation]]:
    """Sets up a data root, a database and the environment; the tasks of this process use them too."""
    from trellis_workers.core import ray_client, transaction
    from trellis_workers.core import settings as core_settings

    databases: list[Database] = []

    def set_up(**variables: str) -> Installation:
        environment = {
            "TRELLIS_DATA_ROOT": str(tmp_path / "data"),
            "TRELLIS_PLATFORM": "cpu",
            "TRELLIS_MIN_FREE_DISK_BYTES": "0",
            "TRELLIS_REDIS_URL": "redis://127.0.0.1:1/0",
            "TRELLIS_RAY_DASHBOARD_URL": "http://127.0.0.1:1",
            "TRELLIS_SWEEP_INTERVAL_S": "0.5",
            "TRELLIS_LAUNCH_TIMEOUT_S": "3",
            **variables,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "data").mkdir()
        settings = Settings()
        database = Database(settings)
        databases.append(database)
        tables.metadata.create_all(database.engine)
        with database.write() as session:
            add_ingredients(session, settings)
        for cached in (core_settings.get_settings, transaction.get_database, ray_client.get_ray):
            cached.cache_clear()
        return Installation(settings, database, environment)

    yield set_up
    for database in databases:
        database.dispose()
    for cached in (core_settings.get_settings, transaction.get_database, ray_client.get_ray):
        cached.cache_clear()


def add_ingredients(session: Session, settings: Settings) -> None:
    """The model and the dataset that the jobs name."""
    session.add(
        Model(
            id="mdl_aaaaaaaaaaaa",
            name="tiny",
            state="ready",
            source={},
            lineage={},
            path="models/tiny",
            warnings=[],
        )
    )
    rows = [{"prompt": f"{number}+1?", "answer": f"#### {number + 1}"} for number in range(1_000)]
    add_dataset(session, settings, rows, id="ds_aaaaaaaaaaaa", name="sums")


@pytest.fixture
def on_ray(install: Callable[..., Installation], ray_head: RayHead, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An installation with a cluster; further settings may be given."""
    for name, value in ray_head.environment.items():
        monkeypatch.setenv(name, value)

    def set_up(**variables: str) -> Installation:
        installation = install(TRELLIS_RAY_DASHBOARD_URL=ray_head.dashboard_url, **variables)
        installation.environment.update(ray_head.environment)
        return installation

    return set_up
