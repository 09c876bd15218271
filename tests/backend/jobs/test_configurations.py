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
