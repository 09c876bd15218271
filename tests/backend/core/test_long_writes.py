"""Transactions that keep others from writing are told of."""

import pytest
from fastapi.testclient import TestClient
from trellis_api.core import database as database_module
from trellis_api.core.database import Database


def test_a_long_write_is_logged_with_its_caller(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with database.write():
        pass
    assert "write transaction" not in caplog.text
    monkeypatch.setattr(database_module, "LONG_WRITE_S", -1.0)

    with database.write():
        pass

    assert "a write transaction took 0.0 s" in caplog.text
    assert "test_a_long_write_is_logged_with_its_caller" in (caplog.records[-1].stack_info or "")


def test_a_long_write_of_a_request_is_logged_with_its_route(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database_module, "LONG_WRITE_S", -1.0)

    client.patch("/api/v1/jobs/job_aaaaaaaaaaaa", json={"name": "n"})

    assert "PATCH /api/v1/jobs/{job_id}" in caplog.text
