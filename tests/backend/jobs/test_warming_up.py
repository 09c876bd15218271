"""The API reads the engines' configuration when it starts, without waiting for it."""

import logging
import threading
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.core.warm_up import warm_up_later
from trellis_api.jobs import warm_up
from trellis_api.main import create_app
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.schema import EngineNotInstalled, load_schema
from trellis_recipes.trl_schema import load_trl_schema


@pytest.fixture
def start(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], TestClient]:
    def build() -> TestClient:
        app = create_app(settings, database)
        monkeypatch.setattr(app.state.probes, "start", lambda: None)
        return TestClient(app)

    return build


def test_starting_loads_every_engine(start: Callable[[], TestClient]) -> None:
    load_schema.cache_clear()
    load_trl_schema.cache_clear()

    with start() as client:
        client.get("/healthz")
        for thread in threading.enumerate():
            if thread.name == "warm-up":
                thread.join(30)

    recipes = list_recipes()
    own_schemas = {each.engine for each in recipes} - {Engine.TRL, Engine.RETRIEVAL}
    assert load_schema.cache_info().currsize == len(own_schemas)
    assert load_trl_schema.cache_info().currsize == sum(each.engine is Engine.TRL for each in recipes)


def test_the_api_answers_while_it_loads(
    start: Callable[[], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(warm_up, "load_schemas", lambda: may_end.wait(30))

    with start() as client:
        response = client.get("/healthz")
        is_loading = any(thread.name == "warm-up" for thread in threading.enumerate())
        may_end.set()

    assert response.status_code == 200
    assert is_loading


@pytest.mark.parametrize("error", [EngineNotInstalled("verl is missing"), OSError("the disk is gone")])
def test_a_failure_is_logged_and_not_fatal(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(warm_up, "load_schemas", fail)

    warm_up_later(warm_up.load_engines).join(30)

    assert [record.levelno >= logging.WARNING for record in caplog.records] == [True]
    assert str(error) in caplog.text


def test_what_fails_keeps_nothing_else_back() -> None:
    done = threading.Event()

    def fail() -> None:
        raise OSError("the disk is gone")

    warm_up_later(fail, done.set).join(30)

    assert done.is_set()
