"""Whether the rows of the validation suit: beside the training data, with columns of their own."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_testing.datasets import add_dataset

OWN = {"prompt": "question", "answer": "reply"}


@pytest.fixture
def other(database: Database, settings: Settings) -> Dataset:
    """Questions whose answers stand under a name that nothing is known by."""
    rows = [{"question": f"What is {n} + 2?", "reply": f"#### {n + 2}"} for n in range(64)]
    with database.write() as session:
        return add_dataset(session, settings, rows)


@pytest.fixture
def body(model: Model, dataset: Dataset, other: Dataset) -> dict[str, Any]:
    """A training on sums, measured on the other dataset."""
    return {
        "name": "sums",
        "recipe": "grpo",
        "preset": "cpu-tiny",
        "model": model.id,
        "dataset": dataset.id,
        "validation_dataset": other.id,
    }


def preview(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/api/v1/jobs/preview", json=body)
    assert answer.status_code == 200, answer.text
    composed: dict[str, Any] = answer.json()
    return composed


def test_a_validation_that_does_not_fit_is_told_with_what_is_missing_and_offered(
    client: TestClient, body: dict[str, Any]
) -> None:
    composed = preview(client, body)

    assert composed["data"]["fits"]
    fit = composed["validation_data"]
    assert not fit["fits"]
    assert [missing["role"] for missing in fit["missing"]] == ["answer"]
    assert {"format": "prompt-answer", "columns": OWN} in [
        {"format": offer["format"], "columns": offer["columns"]} for offer in fit["offers"]
    ]
    assert [error["field"] for error in composed["errors"]] == ["validation_dataset"]
    (refused,) = client.post("/api/v1/jobs", json=body).json()["details"]
    assert (refused["missing"], refused["offers"]) == (fit["missing"], fit["offers"])


def test_an_offer_for_the_validation_is_taken_without_the_training_data(
    client: TestClient, body: dict[str, Any]
) -> None:
    offer = next(
        each for each in preview(client, body)["validation_data"]["offers"] if each["columns"] == OWN
    )
    taken = {**body, "validation_columns": offer["columns"], "validation_data_format": offer["format"]}

    composed = preview(client, taken)
    job = client.post("/api/v1/jobs", json=taken).json()
    copy = client.post(f"/api/v1/jobs/{job['id']}/clone", json={}).json()

    assert composed["errors"] == []
    assert composed["data"]["columns"] == {"prompt": "question", "answer": "answer"}
    assert composed["validation_data"]["columns"] == OWN
    for made in (job, copy):
        assert (made["columns"], made["data_format"]) == ({}, None)
        assert (made["validation_columns"], made["validation_data_format"]) == (OWN, "prompt-answer")


def test_columns_of_the_training_data_hold_for_a_validation_that_has_them(
    client: TestClient, body: dict[str, Any], other: Dataset
) -> None:
    composed = preview(client, {**body, "dataset": other.id, "columns": OWN})

    assert composed["errors"] == []
    assert composed["validation_data"]["columns"] == OWN


def test_rows_held_out_of_the_training_data_have_no_fit_of_their_own(
    client: TestClient, body: dict[str, Any]
) -> None:
    del body["validation_dataset"]

    assert preview(client, body)["validation_data"] is None


def test_how_to_read_a_validation_needs_one(client: TestClient, body: dict[str, Any]) -> None:
    del body["validation_dataset"]

    refused = client.post("/api/v1/jobs", json={**body, "validation_columns": OWN})

    assert refused.status_code == 422
    assert "validation_dataset" in refused.text
