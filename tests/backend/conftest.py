"""A database built by Alembic and rolled back after each test, and the API on top of it.

Every test runs on SQLite, and on PostgreSQL too where a server answers
(``TRELLIS_TEST_POSTGRES_URL``, or the one on this machine that trusts local users): in the fast set those
that bear ``smoke``, in a full run all of them.
"""

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, make_url
from sqlmodel import Session
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.migrations import upgrade
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import repository, service
from trellis_api.jobs.models import Job
from trellis_api.main import create_app
from trellis_api.models.models import Model
from trellis_testing.datasets import add_dataset

LOCAL_POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"


def _find_postgres() -> str | None:
    url = os.environ.get("TRELLIS_TEST_POSTGRES_URL", LOCAL_POSTGRES)
    try:
        with psycopg.connect(url, connect_timeout=2):
            return url
    except psycopg.OperationalError:
        if "TRELLIS_TEST_POSTGRES_URL" in os.environ:
            raise
        return None


POSTGRES = _find_postgres()
BACKENDS = ["sqlite", *([pytest.param("postgresql", marks=pytest.mark.slow)] if POSTGRES else [])]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRELLIS_")]:
        monkeypatch.delenv(name)


@contextmanager
def _new_postgres(template: str = "template1") -> Iterator[str]:
    """The URL of a database of our own on the server, a copy of ``template``, dropped in the end."""
    assert POSTGRES is not None
    name = f"trellis_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(POSTGRES, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=BACKENDS)
def unmigrated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables, for tests of migrations."""
    with _new_postgres() if request.param == "postgresql" else nullcontext() as url:
        database = Database(Settings(data_root=tmp_path, database_url=url))
        yield database
        database.dispose()


@pytest.fixture(scope="session", params=BACKENDS)
def migrated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One database a backend, migrated from empty."""
    root = tmp_path_factory.mktemp("database")
    with _new_postgres() if request.param == "postgresql" else nullcontext() as url:
        settings = Settings(data_root=root, database_url=url)
        upgrade(settings)
        database = Database(settings)
        yield database
        database.dispose()


@pytest.fixture
def database_url(migrated: Database) -> str:
    """Where the test's database is: by default the one that all tests share."""
    return migrated.url.render_as_string(hide_password=False)


@pytest.fixture
def copied_database_url(migrated: Database, tmp_path: Path) -> Iterator[str]:
    """A copy of the empty database that is the test's own.

    For tests in which several threads use the database: on the one shared connection, transactions of
    threads would be savepoints in each other.
    """
    migrated.dispose()  # PostgreSQL copies no database that somebody is connected to
    if not migrated.is_sqlite:
        with _new_postgres(str(migrated.url.database)) as url:
            yield url
        return
    copy = tmp_path / "database.sqlite"
    with closing(sqlite3.connect(str(migrated.url.database))) as source, closing(sqlite3.connect(copy)) as to:
        source.backup(to)
    yield f"sqlite:///{copy}"


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """A platform with four slots, a data root of its own, and no broker."""
    return Settings(
        data_root=tmp_path / "data root",
        database_url=database_url,
        redis_url=None,
        platform="cpu",
        slots=4,
        min_free_disk_bytes=0,
        frontend_dist=tmp_path / "no dashboard",
        event_poll_interval_s=0.02,
    )


@pytest.fixture
def connection(migrated: Database) -> Iterator[Connection]:
    """A connection whose transaction is rolled back in the end."""
    engine = migrated.engine.execution_options(trellis_begin="IMMEDIATE")
    with engine.connect() as connection:
        transaction = connection.begin()
        yield connection
        transaction.rollback()


@pytest.fixture
def database(settings: Settings, connection: Connection) -> Iterator[Database]:
    """What commits here is a savepoint of the test's connection."""
    settings.data_root.mkdir(parents=True, exist_ok=True)
    database = Database.bound_to(settings, connection)
    yield database
    database.dispose()


@pytest.fixture
def own_database(settings: Settings) -> Iterator[Database]:
    """The database at ``settings.database_url``: transactions really commit, threads have connections."""
    settings.data_root.mkdir(parents=True, exist_ok=True)
    database = Database(settings)
    yield database
    database.dispose()


@pytest.fixture
def session(database: Database) -> Iterator[Session]:
    """A transaction for services that are called directly."""
    with database.write() as session:
        yield session


@pytest.fixture
def anonymous(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    """The API, for somebody who is not logged in."""
    app = create_app(settings, database)
    # They look at the database from a thread of their own; the test's connection is for one at a time.
    monkeypatch.setattr(app.state.probes, "start", lambda: None)
    with TestClient(app) as client:
        yield client


@pytest.fixture
def admin_token(settings: Settings, database: Database) -> str:
    """The token of the first start."""
    return ensure_admin_token(database, path=settings.admin_token_path)


@pytest.fixture
def client(anonymous: TestClient, admin_token: str) -> TestClient:
    """The API, for a script with the admin token."""
    anonymous.headers["Authorization"] = f"Bearer {admin_token}"
    return anonymous


@dataclass(frozen=True)
class Launched:
    """A job that has been claimed, with the token that its run reports with."""

    job_id: str
    token: str
    attempt: int = 1

    @property
    def headers(self) -> dict[str, str]:
        """What the run sends."""
        return {"Authorization": f"Bearer {self.token}"}


def build_model(settings: Settings, **changes: Any) -> Model:
    """A registered model with an (empty) folder."""
    model_id = new_id("mdl")
    (settings.data_root / "models" / model_id).mkdir(parents=True)
    values: dict[str, Any] = {
        "id": model_id,
        "name": f"model {model_id}",
        "state": "ready",
        "source": {"kind": "local"},
        "lineage": {},
        "path": f"models/{model_id}",
        "warnings": [],
    }
    return Model(**{**values, **changes})


@pytest.fixture
def model(database: Database, settings: Settings) -> Model:
    """A model to train."""
    with database.write() as session:
        row = build_model(settings)
        session.add(row)
    return row


@pytest.fixture
def dataset(database: Database, settings: Settings) -> Dataset:
    """A dataset of 512 questions and answers to train on."""
    with database.write() as session:
        return add_dataset(session, settings)


def build_job(**changes: Any) -> Job:
    """A queued job."""
    values: dict[str, Any] = {
        "id": new_id("job"),
        "name": "a job",
        "recipe": "grpo",
        "model_id": "mdl_aaaaaaaaaaaa",
        "dataset_id": "ds_aaaaaaaaaaaa",
    }
    return Job(**{**values, **changes})


@pytest.fixture
def make_job(database: Database) -> Callable[..., str]:
    """Writes a queued job; returns its id."""

    def make(*, tags: tuple[str, ...] = (), **changes: Any) -> str:
        with database.write() as session:
            job = build_job(**changes)
            repository.add_job(session, job=job, tags=tags)
            return job.id

    return make


@pytest.fixture
def make_launched(database: Database, make_job: Callable[..., str]) -> Callable[..., Launched]:
    """Writes a job and claims it for launch."""

    def make(**changes: Any) -> Launched:
        job_id = make_job(**changes)
        with database.write() as session:
            claim = service.claim_for_launch(session, job_id=job_id)
        assert claim is not None
        return Launched(job_id=job_id, token=claim.token)

    return make
