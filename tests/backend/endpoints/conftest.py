"""Endpoints whose engine is a small server, as the workers and the run would have left them."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.models.models import Model
from trellis_testing.endpoint_life import KEY, Life
from trellis_testing.engine_server import EngineServer


@pytest.fixture
def database_url(copied_database_url: str) -> str:
    """A database of the test's own: requests that wait and streams look at it beside the test."""
    return copied_database_url


@pytest.fixture
def database(own_database: Database) -> Database:
    """Each thread has a connection of its own."""
    return own_database


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Requests wait for an engine for a moment only."""
    return settings.model_copy(update={"endpoint_wait_s": 0.3})


@pytest.fixture
def engine() -> Iterator[EngineServer]:
    """What answers in the place of vLLM."""
    with EngineServer(KEY).running() as server:
        yield server


@pytest.fixture
def life(database: Database, settings: Settings) -> Life:
    """What workers and runs do."""
    return Life(database, settings)


@pytest.fixture
def ready(client: TestClient, model: Model, life: Life, engine: EngineServer) -> dict[str, Any]:
    """The model's endpoint, ready: its engine is the small server."""
    endpoint: dict[str, Any] = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    life.report_ready(client, endpoint, life.launch(endpoint), engine.port)
    found: dict[str, Any] = client.get(f"/api/v1/endpoints/{endpoint['id']}").json()
    assert found["state"] == "ready"
    return found
