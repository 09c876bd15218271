"""Migrations, error bodies, health, headers and the served page."""

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from fastapi.testclient import TestClient
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import OperationalError
from trellis_api.core.database import Database
from trellis_api.core.migrations import MIGRATIONS, UnknownSchema, check, upgrade, upgrade_connection
from trellis_api.core.redaction import redact
from trellis_api.core.settings import Settings
from trellis_api.datasets import service as datasets
from trellis_api.main import create_app


def test_migrations_build_exactly_the_tables_of_the_code(connection: Connection) -> None:
    check(connection)


def test_an_upgrade_of_a_current_database_changes_nothing(settings: Settings, migrated: Database) -> None:
    before = set(inspect(migrated.engine).get_table_names())

    upgrade(settings)

    assert set(inspect(migrated.engine).get_table_names()) == before


def test_every_migration_can_be_undone() -> None:
    scripts = list(ScriptDirectory(str(MIGRATIONS)).walk_revisions())

    assert scripts
    assert [each.revision for each in scripts if not hasattr(each.module, "downgrade")] == []


def test_an_upgrade_makes_the_data_root(tmp_path: Path) -> None:
    settings = Settings(data_root=tmp_path / "new" / "data root")

    upgrade(settings)

    assert (settings.data_root / "trellis.db").is_file()


def test_a_database_of_another_version_is_left_alone_with_what_to_do(unmigrated: Database) -> None:
    with unmigrated.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('0028_step_times')")

        with pytest.raises(UnknownSchema, match=r"schema '0028_step_times'.*'Upgrading'"):
            upgrade_connection(connection)

        assert inspect(connection).get_table_names() == ["alembic_version"]


def test_health_needs_no_login(anonymous: TestClient) -> None:
    assert anonymous.get("/healthz").json() == {"status": "ok"}
    assert anonymous.get("/readyz").json()["is_ready"]


def test_a_database_that_is_not_migrated_is_not_ready(tmp_path: Path) -> None:
    settings = Settings(data_root=tmp_path)
    client = TestClient(create_app(settings))  # not started: a start needs the tables

    response = client.get("/readyz")

    assert response.status_code == 503
    assert "migrate" in response.json()["problems"]["database"]


def test_every_error_has_the_same_shape(client: TestClient) -> None:
    unknown_route = client.get("/api/v1/no/such/route")
    wrong_method = client.put("/api/v1/jobs")
    malformed = client.post("/api/v1/jobs", json={"name": 5})

    for response in (unknown_route, wrong_method, malformed):
        assert response.json().keys() == {"error", "message", "details"}
    assert [r.status_code for r in (unknown_route, wrong_method, malformed)] == [404, 405, 422]
    assert {issue["field"] for issue in malformed.json()["details"]} >= {"name", "recipe", "model"}


def test_an_unexpected_error_is_logged_and_says_nothing(
    settings: Settings, database: Database, admin_token: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(settings, database)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("the inside of the house")

    client = TestClient(app, raise_server_exceptions=False)

    with caplog.at_level(logging.ERROR):
        response = client.get("/broken")

    assert response.status_code == 500
    assert response.json()["error"] == "internal_error"
    assert "inside" not in response.text
    assert "the inside of the house" in caplog.text


def test_pages_may_only_talk_to_us(anonymous: TestClient) -> None:
    headers = anonymous.get("/healthz").headers

    assert "default-src 'self'" in headers["content-security-policy"]
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


@pytest.fixture
def page(settings: Settings, database: Database, tmp_path: Path) -> TestClient:
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>the page</h1>")
    (folder / "assets" / "app-1a2b.js").write_text("run()")
    (tmp_path / "secret.txt").write_text("outside")
    return TestClient(create_app(settings.model_copy(update={"frontend_dist": folder}), database))


def test_the_dashboard_is_served_with_its_views(page: TestClient) -> None:
    assert page.get("/").text == "<h1>the page</h1>"
    assert page.get("/jobs/job_aaaaaaaaaaaa").text == "<h1>the page</h1>"
    assert "immutable" in page.get("/assets/app-1a2b.js").headers["cache-control"]
    assert page.get("/").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    ["/assets/missing.js", "/assets/missing", "/api/v1/missing", "/..%2fsecret.txt", "/%2e%2e/secret.txt"],
)
def test_what_is_not_there_is_no_page(page: TestClient, path: str) -> None:
    response = page.get(path)

    assert response.status_code == 404
    assert "outside" not in response.text


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("step 5, loss 0.25, model Qwen/hf_transfer", True),
        ("https://example.org/path?x=1", True),
        ("hf_abcdefghijklmnopqrstuvwxyz", False),
        ("postgresql://user:hunter2@db/x", False),
        ("redis://:hunter2@cache:6379/0", False),
        ("postgresql://user:p@hunter2@db/x", False),
        ("http://127.0.0.1:8001/users/@me", True),
        ("Authorization: Bearer 0123456789abcdef0123", False),
        ("trellis_job_0123456789012345678901234567890", False),
    ],
)
def test_redaction_masks_secrets_and_nothing_else(text: str, is_kept: bool) -> None:
    assert (redact(text) == text) == is_kept
    assert "hunter2" not in redact(text)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        (sqlite3.SQLITE_FULL, 507, "disk_full"),
        (sqlite3.SQLITE_BUSY, 503, "database_unavailable"),
    ],
)
def test_a_database_without_room_says_so(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, code: int, status: int, error: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        said = sqlite3.OperationalError("database or disk is full")
        said.sqlite_errorcode = code
        raise OperationalError("UPDATE datasets", {}, said)

    monkeypatch.setattr(datasets, "list_page", fail)
    answer = client.get("/api/v1/datasets")

    assert (answer.status_code, answer.json()["error"]) == (status, error)


@pytest.mark.parametrize(
    ("values", "is_allowed"),
    [
        ({}, True),
        ({"host": "localhost"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "0.0.0.0", "allow_local_addresses": True}, True),
        ({"allow_local_addresses": False}, False),
    ],
)
def test_local_addresses_are_opened_where_only_this_machine_reaches_the_platform(
    values: dict[str, Any], is_allowed: bool
) -> None:
    assert Settings(**values).allows_local_addresses is is_allowed
