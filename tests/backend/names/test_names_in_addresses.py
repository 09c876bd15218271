"""Names in paths and filters: an address that takes an ID takes the name as well."""

from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_testing.datasets import add_dataset
from trellis_testing.requests import AGENT_CODE, get, post


@pytest.fixture
def body(model: Model, dataset: Dataset) -> dict[str, Any]:
    return {
        "name": "my first run", "recipe": "sft", "preset": "cpu-tiny", "model": model.name,
        "dataset": dataset.name,
    }  # fmt: skip


@pytest.mark.smoke
def test_models_datasets_and_jobs_are_read_by_name(
    client: TestClient, body: dict[str, Any], model: Model, dataset: Dataset
) -> None:
    job = post(client, "/jobs", body)

    assert get(client, f"/models/{quote(model.name)}/lineage") == get(client, f"/models/{model.id}/lineage")
    assert get(client, f"/datasets/{quote(dataset.name.upper())}")["id"] == dataset.id
    assert get(client, "/jobs/my%20first%20run")["id"] == job["id"]
    assert get(client, "/jobs/my%20first%20run/logs")["lines"] == []


def test_a_job_is_changed_by_its_name(client: TestClient, body: dict[str, Any]) -> None:
    job = post(client, "/jobs", body)

    changed = client.patch("/api/v1/jobs/my%20first%20run", json={"notes": "by name"})

    assert changed.json()["id"] == job["id"]
    assert get(client, f"/jobs/{job['id']}")["notes"] == "by name"


def test_a_name_of_several_jobs_is_refused_with_their_ids(client: TestClient, body: dict[str, Any]) -> None:
    ids = [post(client, "/jobs", body)["id"] for _ in range(2)]

    found = client.post("/api/v1/jobs/my%20first%20run/stop")

    assert (found.status_code, found.json()["error"]) == (422, "ambiguous_name")
    assert all(each in found.json()["message"] for each in ids)
    assert {get(client, f"/jobs/{each}")["state"] for each in ids} == {"queued"}


def test_of_many_names_in_other_capitals_the_one_as_written_is_taken(
    client: TestClient, database: Database, settings: Settings
) -> None:
    names = [f"{'SUMS'[:n]}{'sums'[n:]}" for n in range(5)] + [
        f"s{'UMS'[:n]}{'ums'[n:]}" for n in range(1, 4)
    ]
    with database.write() as session:
        ids = {
            name: add_dataset(session, settings, name=name).id for name in (*names, "SuMs", "sUmS", "sumS")
        }

    assert {name: get(client, f"/datasets/{name}")["id"] for name in ids} == ids


@pytest.mark.parametrize(
    "path", ["/jobs/nothing", "/models/nothing", "/datasets/nothing", "/workflows/nothing"]
)
def test_what_has_no_such_name_does_not_exist(client: TestClient, path: str) -> None:
    assert client.get(f"/api/v1{path}").status_code == 404


def test_a_stranger_does_not_learn_which_names_exist(anonymous: TestClient, model: Model) -> None:
    for name in (quote(model.name), "nothing"):
        assert anonymous.get(f"/api/v1/models/{name}").status_code == 401


def test_lists_are_filtered_by_name(
    client: TestClient, body: dict[str, Any], model: Model, dataset: Dataset
) -> None:
    agent = post(client, "/workflows", {"name": "shop", "code": AGENT_CODE})
    tuned = {**body, "name": "tuned", "recipe": "tune", "preset": None, "params": {"workflow": "shop"}}
    job = post(client, "/jobs", tuned)
    post(client, "/jobs", body)

    assert [each["id"] for each in get(client, "/jobs", workflow="shop")["items"]] == [job["id"]]
    assert get(client, "/jobs", workflow=agent["id"]) == get(client, "/jobs", workflow="SHOP")
    for path, name in (("/evaluations", "model"), ("/transfers", "model"), ("/evaluations/history", "model")):
        assert get(client, path, model=model.name) == get(client, path, model=model.id), name
    for path in ("/evaluations", "/evaluations/history"):
        assert get(client, path, job=job["name"]) == get(client, path, job=job["id"]), path
    for path in ("/data-tasks", "/pipelines/runs", "/evaluations/leaderboard"):
        assert get(client, path, dataset=dataset.name) == get(client, path, dataset=dataset.id), path
