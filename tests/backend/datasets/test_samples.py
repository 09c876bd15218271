"""Sample data as datasets of the platform."""

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_data.samples.listing import list_samples
from trellis_testing.data_tasks import finish_data_tasks

SAMPLES = "/api/v1/datasets/samples"
NAME = "addition-prompts-held-out"


def entry(client: TestClient, name: str) -> dict[str, object]:
    items = client.get(SAMPLES).json()["items"]
    return next(item for item in items if item["name"] == name)


def test_a_sample_is_added_once(client: TestClient) -> None:
    assert entry(client, NAME)["dataset_id"] is None

    first, second = client.post(f"{SAMPLES}/{NAME}"), client.post(f"{SAMPLES}/{NAME}")

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"] == entry(client, NAME)["dataset_id"]
    assert first.json()["source"] | {"size_bytes": 0, "sha256": ""} == {
        "kind": "sample",
        "name": NAME,
        "revision": None,
        "size_bytes": 0,
        "sha256": "",
        "dataset": None,
        "version": None,
    }


def test_a_sample_whose_name_is_taken_gets_a_number(client: TestClient) -> None:
    row = {"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]}
    client.post("/api/v1/datasets/rows", json={"name": NAME, "rows": [row]})

    added = client.post(f"{SAMPLES}/{NAME}").json()

    assert added["name"].startswith(NAME)
    assert added["name"] != NAME


@pytest.mark.slow
def test_a_deleted_sample_can_be_added_again(
    client: TestClient, settings: Settings, database: Database
) -> None:
    first = client.post(f"{SAMPLES}/{NAME}").json()["id"]
    finish_data_tasks(settings, database)
    assert client.delete(f"/api/v1/datasets/{first}").is_success

    assert client.post(f"{SAMPLES}/{NAME}").status_code == 201


def test_an_unknown_sample_is_refused_with_the_names_of_all(client: TestClient) -> None:
    answer = client.post(f"{SAMPLES}/nothing")

    assert (answer.status_code, answer.json()["error"]) == (404, "sample_dataset_not_found")
    assert NAME in answer.json()["message"]


@pytest.mark.slow
def test_every_sample_is_read_as_the_format_that_it_names(
    client: TestClient, settings: Settings, database: Database
) -> None:
    ids = {sample.name: client.post(f"{SAMPLES}/{sample.name}").json()["id"] for sample in list_samples()}
    finish_data_tasks(settings, database)

    for sample in list_samples():
        found = client.get(f"/api/v1/datasets/{ids[sample.name]}").json()
        assert (found["state"], found["format"], found["name"]) == ("ready", sample.format, sample.name)
        assert found["row_count"] == len(sample.make_rows())
