"""Jobs whose metrics go to Weights & Biases as well: which are refused, and what keeps the wish."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.reporting import requests, service
from trellis_api.jobs.reporting.models import JobReport
from trellis_api.models.models import Model
from trellis_testing.job_pipelines import PipelineRig
from trellis_testing.sweeps import METRIC, SweepRig

KEY = "the key of the account"
TOKEN = "sk-0123456789abcdefghijklmnopqrstuvwxyz0123456789"
WANTED = {"wandb": {"project": "sums", "entity": "team", "name": None, "tags": ["a"]}}


@pytest.fixture
def body(model: Model, dataset: Dataset) -> dict[str, Any]:
    """A job that can run, and reports."""
    return {
        "name": "first",
        "recipe": "grpo",
        "preset": "cpu-tiny",
        "model": model.id,
        "dataset": dataset.id,
        "report_to": WANTED,
    }


@pytest.fixture
def has_wandb(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.wandb_api_key = SecretStr(KEY)
    monkeypatch.setattr(requests, "find_spec", lambda _: object())


def launch(client: TestClient, body: dict[str, Any]) -> Any:
    answer = client.post("/api/v1/jobs", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def refuse(client: TestClient, body: dict[str, Any], **wandb: Any) -> list[tuple[str, str]]:
    """Codes and fields, which the preview has too."""
    wanted = {**body, "report_to": {"wandb": {"project": "sums", **wandb}}}
    answer = client.post("/api/v1/jobs", json=wanted)
    previewed = client.post("/api/v1/jobs/preview", json=wanted).json()["errors"]
    assert answer.status_code == 422
    assert answer.json()["details"][0]["code"] == answer.json()["error"]
    found = [(each["code"], each["field"]) for each in answer.json()["details"]]
    assert found == [(each["code"], each["field"]) for each in previewed]
    return found


def test_without_a_key_or_the_package_it_is_refused_before_the_launch(
    client: TestClient, body: dict[str, Any], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refuse(client, body) == [("wandb_not_set_up", "report_to.wandb")]
    settings.wandb_api_key = SecretStr(KEY)
    monkeypatch.setattr(requests, "find_spec", lambda _: None)
    assert refuse(client, body) == [("wandb_not_installed", "report_to.wandb")]
    assert client.get("/api/v1/jobs").json()["items"] == []


@pytest.mark.usefixtures("has_wandb")
@pytest.mark.parametrize("project", ["a/b", "a" * 129])
def test_a_name_that_no_project_can_have_is_refused(
    client: TestClient, body: dict[str, Any], project: str
) -> None:
    assert refuse(client, body, project=project) == [("wandb_project_name", "report_to.wandb.project")]


def test_a_key_among_the_settings_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    wanted = {"wandb": {"project": "sums", "tags": [TOKEN]}}

    answer = client.post("/api/v1/jobs", json={**body, "report_to": wanted})

    assert answer.status_code == 422
    assert "sk-0123" not in answer.text


@pytest.mark.usefixtures("has_wandb")
def test_a_job_says_where_it_reports_and_a_clone_does_the_same(
    client: TestClient, body: dict[str, Any], database: Database
) -> None:
    job = launch(client, body)
    assert job["report_to"] == {**WANTED, "url": None, "sent_step": None, "problem": None}

    with database.write() as session:
        service.note_failure(session, job_id=job["id"], reason="no route to host")
    clone = client.post(f"/api/v1/jobs/{job['id']}/clone", json={}).json()

    assert clone["report_to"] == job["report_to"]
    told = client.get(f"/api/v1/jobs/{job['id']}").json()["report_to"]
    assert told["problem"] == "no route to host"
    assert launch(client, {**body, "report_to": None})["report_to"] is None
    with database.read() as session:
        rows = [session.get_one(JobReport, each["id"]) for each in (job, clone)]
    assert [row.run_id for row in rows] == [job["id"], clone["id"]]
    assert KEY not in str([row.model_dump() for row in rows])


@pytest.mark.usefixtures("has_wandb")
def test_a_clone_may_report_elsewhere_or_nowhere(
    client: TestClient, body: dict[str, Any], settings: Settings
) -> None:
    url = f"/api/v1/jobs/{launch(client, body)['id']}/clone"
    other = {"wandb": {"project": "other"}}

    told = [client.post(url, json={"report_to": each}).json()["report_to"] for each in (other, None)]

    assert (told[0]["wandb"]["project"], told[0]["wandb"]["name"], told[1]) == ("other", None, None)
    settings.wandb_api_key = None
    assert client.post(url, json={"report_to": other}).json()["error"] == "wandb_not_set_up"


@pytest.mark.usefixtures("has_wandb")
def test_a_clone_keeps_where_its_original_reported_when_the_key_is_gone(
    client: TestClient, body: dict[str, Any], settings: Settings
) -> None:
    job = launch(client, body)
    settings.wandb_api_key = None

    answer = client.post(f"/api/v1/jobs/{job['id']}/clone")

    assert answer.status_code == 201, answer.text
    assert answer.json()["report_to"]["wandb"] == WANTED["wandb"]


@pytest.mark.usefixtures("has_wandb")
def test_a_deleted_job_leaves_no_report(client: TestClient, body: dict[str, Any], database: Database) -> None:
    job_id = launch(client, body)["id"]
    client.post(f"/api/v1/jobs/{job_id}/stop")

    assert client.delete(f"/api/v1/jobs/{job_id}").status_code == 204

    with database.read() as session:
        assert session.get(JobReport, job_id) is None


@pytest.mark.usefixtures("has_wandb")
def test_every_run_of_a_sweep_reports(
    client: TestClient, body: dict[str, Any], database: Database, settings: Settings
) -> None:
    sweep = {
        "name": "rates",
        "job": body,
        "parameters": {"learning_rate": {"values": [1e-5, 3e-5]}},
        "search": {"method": "grid"},
        "objective": {"metric": METRIC},
    }
    answer = client.post("/api/v1/sweeps", json=sweep)
    assert answer.status_code == 201, answer.text

    settings.wandb_api_key = None  # where the worker runs that begins them
    assert "wandb_not_set_up" in client.post("/api/v1/sweeps", json=sweep).text
    SweepRig(database, settings).look()

    listed = client.get("/api/v1/jobs", params={"sweep": answer.json()["id"]}).json()["items"]
    assert [job["report_to"]["wandb"] for job in listed] == [WANTED["wandb"]] * 2


@pytest.mark.usefixtures("has_wandb")
def test_a_stage_of_a_pipeline_reports(
    client: TestClient, body: dict[str, Any], database: Database, settings: Settings
) -> None:
    stage = {
        **{name: body[name] for name in ("recipe", "preset", "dataset", "report_to")},
        "id": "rl",
        "model": {"base": body["model"]},
    }
    pipeline = {"name": "agent", "stages": [stage]}
    answer = client.post("/api/v1/job-pipelines", json=pipeline)
    assert answer.status_code == 201, answer.text
    rig = PipelineRig(database, settings)

    settings.wandb_api_key = None  # where the worker runs that begins it
    assert "wandb_not_set_up" in client.post("/api/v1/job-pipelines", json=pipeline).text
    rig.look()

    (job,) = client.get("/api/v1/jobs").json()["items"]
    assert job["report_to"]["wandb"] == WANTED["wandb"]
    measure = {"id": "m", "kind": "evaluate", "model": stage["model"], "benchmarks": [{"benchmark": "gsm8k"}]}
    wanted = {"name": "other", "stages": [{**measure, "report_to": WANTED}]}
    refused = client.post("/api/v1/job-pipelines", json=wanted)
    assert (refused.status_code, "no report_to" in refused.text) == (422, True)
