"""What a request for a generation has to say, over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_testing.datasets import add_dataset

GENERATIONS = "/api/v1/generations"
SAMPLE = {"kind": "rejection-sampling", "check": {"kind": "numeric"}}


@pytest.fixture
def seeds(database: Database, settings: Settings) -> Dataset:
    with database.write() as session:
        return add_dataset(session, settings)


@pytest.fixture
def endpoint(settings: Settings) -> Iterator[None]:
    settings.judges["writer"] = JudgeEndpoint(
        base_url="http://secret.test/v1", model="m", key_variable="A_KEY", input_price=0.5
    )
    yield
    settings.judges.clear()


@pytest.fixture
def order(seeds: Dataset, endpoint: None) -> dict[str, Any]:
    """A request that can be carried out."""
    return {
        "name": "more",
        "dataset": seeds.id,
        "endpoint": "writer",
        "method": SAMPLE,
        "output": {"kind": "dataset", "name": "made"},
    }


def test_endpoints_are_named_without_address_and_key(client: TestClient, endpoint: None) -> None:
    answer = client.get(f"{GENERATIONS}/endpoints")

    assert [each["name"] for each in answer.json()["items"]] == ["writer"]
    assert answer.json()["items"][0]["input_price"] == 0.5
    assert "secret.test" not in answer.text
    assert "A_KEY" not in answer.text


def test_a_generation_waits_with_the_dataset_that_it_will_make(
    client: TestClient, order: dict[str, Any]
) -> None:
    answer = client.post(GENERATIONS, json=order)

    assert answer.status_code == 202, answer.text
    task = answer.json()
    made = [each for each in client.get("/api/v1/datasets").json()["items"] if each["name"] == "made"]
    assert (task["kind"], task["state"]) == ("generate", "queued")
    assert made[0]["state"] == "creating"
    assert made[0]["source"]["kind"] == "generation"


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"endpoint": None}, 422, "generation_writer_missing"),
        ({"model": "mdl_aaaaaaaaaaaa"}, 422, "generation_writer_missing"),
        ({"endpoint": "nobody"}, 422, "unknown_endpoint"),
        ({"endpoint": None, "model": "mdl_aaaaaaaaaaaa"}, 409, "model_not_ready"),
        ({"endpoint": None, "model": "../../etc"}, 409, "model_not_ready"),
        ({"dataset": "ds_aaaaaaaaaaaa"}, 404, "dataset_not_found"),
        ({"version": "nowhere"}, 404, "version_not_found"),
        ({"split": "nowhere"}, 404, "split_not_found"),
        ({"output": {"kind": "none"}}, 422, "invalid_request"),
        ({"max_cost": 0}, 422, "invalid_request"),
        ({"method": {"kind": "magic"}}, 422, "invalid_request"),
        (
            {"method": {"kind": "rejection-sampling", "check": {"kind": "numeric", "column": "nowhere"}}},
            422,
            "seeds_unfit",
        ),
        (
            {"method": {"kind": "rejection-sampling", "check": {"kind": "judge", "name": "nobody"}}},
            422,
            "unknown_judge",
        ),
        ({"system": "a\x00b"}, 422, "invalid_request"),
    ],
)
def test_a_generation_that_cannot_be_is_refused(
    client: TestClient, order: dict[str, Any], changes: dict[str, Any], status: int, code: str
) -> None:
    answer = client.post(GENERATIONS, json={**order, **changes})

    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    assert len(client.get("/api/v1/datasets").json()["items"]) == 1


def test_a_model_without_chat_template_is_not_asked(
    client: TestClient, order: dict[str, Any], model: Model
) -> None:
    answer = client.post(GENERATIONS, json={**order, "endpoint": None, "model": model.id})

    assert (answer.status_code, answer.json()["error"]) == (422, "model_without_chat_template")


def test_on_gpus_a_model_is_served_where_a_slot_is_free(
    client: TestClient,
    settings: Settings,
    database: Database,
    order: dict[str, Any],
    model: Model,
    make_job: Any,
) -> None:
    settings.platform = "cuda"
    with database.write() as session:
        model.has_chat_template = True
        session.add(model)
    served = {**order, "endpoint": None, "model": model.id}
    make_job(state="running", gpus=3)

    first = client.post(GENERATIONS, json=served)
    with database.write() as session:
        task = session.get(DataTask, first.json()["id"])
        assert task is not None
        task.state = "running"
        session.add(task)
    second = client.post(GENERATIONS, json={**served, "output": {"kind": "dataset", "name": "other"}})

    assert first.status_code == 202, first.text
    assert (second.status_code, second.json()["error"]) == (409, "no_free_slot")
