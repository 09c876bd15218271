"""What a job was composed to is stored beside its row, in the order in which it applies."""

from typing import Any

from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import configuration, repository
from trellis_api.jobs.models import Job, JobConfiguration
from trellis_api.jobs.request_fields import INPUTS, PLAIN
from trellis_api.jobs.schemas import JobCreate, JobRead
from trellis_api.models.models import Model

#: Fields that the job's row has in another form, or that have tables of their own.
SPELLED_OUT = {"tags", "resources", "keep_best_by", "export_as", "evaluate", "report_to"}


def test_a_submission_stores_what_the_preview_shows(
    client: TestClient, database: Database, model: Model, dataset: Dataset
) -> None:
    body: dict[str, Any] = {
        "name": "kept", "recipe": "sft", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id,
        "overrides": {"optim.betas": [0.9, 0.95]},
    }  # fmt: skip
    shown = client.post("/api/v1/jobs/preview", json=body).json()
    response = client.post("/api/v1/jobs", json=body)
    assert response.status_code == 201, response.text
    job_id = response.json()["id"]

    with database.read() as session:
        found = configuration.find(session, job_id=job_id)
    with database.write() as session:
        repository.delete_job(session, job_id=job_id)
        row = session.get(JobConfiguration, job_id)

    assert found is not None
    assert found.composition.params == shown["params"]
    order = [line.removeprefix("+").partition("=")[0] for line in shown["engine_overrides"]]
    assert list(found.composition.settings) == [key for key in order if key in found.composition.settings]
    assert found.train_data.format == shown["data"]["read_as"]
    assert row is None


def test_each_field_of_a_request_has_its_place_in_the_row() -> None:
    """A field that is in neither list would be lost by a clone."""
    assert INPUTS.keys() | PLAIN.keys() | SPELLED_OUT == JobCreate.model_fields.keys()
    assert {*INPUTS.values(), *PLAIN.values()} <= Job.model_fields.keys()
    assert PLAIN.keys() <= JobRead.model_fields.keys()


def test_what_a_job_was_composed_to_is_listed_compared_and_sorted_by(
    client: TestClient, database: Database, model: Model, dataset: Dataset
) -> None:
    """A preset or default that changes later says nothing about the jobs that ran before."""
    body: dict[str, Any] = {
        "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id,
    }  # fmt: skip
    names = ("high", "low", "middle")
    ids = {
        name: client.post("/api/v1/jobs", json={**body, "name": name, "seed": 7}).json()["id"]
        for name in names
    }
    for name, rate in (("high", 0.5), ("low", 1e-9)):
        rewrite(database, ids[name], learning_rate=rate)
    fields = ["parameters.learning_rate", "parameters.mini_batch_size"]

    order = {"sort": fields[0], "order": "asc", "fields": fields}
    listed = client.get("/api/v1/jobs", params=order).json()["items"]
    compared = client.get("/api/v1/jobs/compare", params={"ids": ",".join([ids["high"], ids["low"]])}).json()

    assert [job["name"] for job in listed] == ["low", "middle", "high"]
    assert [job["fields"][fields[0]] for job in listed][::2] == [1e-9, 0.5]
    # Derived when it was composed: neither the preset nor the recipe has a value.
    assert all(job["fields"][fields[1]] for job in listed)
    rows = {row["name"]: row["values"] for row in compared["parameters"] if row["group"] == "params"}
    assert rows["learning_rate"] == {ids["high"]: 0.5, ids["low"]: 1e-9}
    # What a job's own seed is filled into is no other setting.
    assert "seed" not in rows


def rewrite(database: Database, job_id: str, **params: Any) -> None:
    """Let a job have been composed to other values than today's recipe has."""
    with database.write() as session:
        row = session.get_one(JobConfiguration, job_id)
        composition = row.document["composition"]
        changed = {**composition, "params": {**composition["params"], **params}}
        row.document = {**row.document, "composition": changed}
