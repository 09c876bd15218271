"""Names where the API takes IDs: of models, datasets, agent code and what rewards use."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_testing.datasets import add_dataset
from trellis_testing.requests import AGENT_CODE, post


@pytest.fixture
def body(model: Model, dataset: Dataset) -> dict[str, Any]:
    return {
        "name": "by name",
        "recipe": "grpo",
        "preset": "cpu-tiny",
        "model": model.name,
        "dataset": dataset.name,
    }


@pytest.fixture
def twins(database: Database, settings: Settings) -> list[str]:
    """Datasets whose names differ in capitals only."""
    with database.write() as session:
        return [add_dataset(session, settings, name=name).id for name in ("Sums", "sums")]


@pytest.mark.smoke
def test_a_job_by_names_is_the_job_by_ids(
    client: TestClient, body: dict[str, Any], model: Model, dataset: Dataset
) -> None:
    rows = {"validation_dataset": dataset.name}

    preview = post(client, "/jobs/preview", {**body, **rows})
    job = post(client, "/jobs", {**body, **rows})

    assert preview["errors"] == []
    assert job["model"] == {"id": model.id, "name": model.name}
    assert job["dataset"]["id"] == job["validation_dataset"]["id"] == dataset.id


def test_a_name_matches_in_other_capitals_if_it_is_the_only_one(
    client: TestClient, body: dict[str, Any], model: Model
) -> None:
    job = post(client, "/jobs", {**body, "model": model.name.upper()})

    assert job["model"]["id"] == model.id


def test_a_name_as_it_is_written_wins_over_other_capitals(
    client: TestClient, body: dict[str, Any], twins: list[str]
) -> None:
    found = [post(client, "/jobs", {**body, "dataset": name})["dataset"]["id"] for name in ("Sums", "sums")]

    assert found == twins


@pytest.mark.parametrize("path", ["/jobs", "/jobs/preview"])
def test_an_ambiguous_name_is_refused_with_its_candidates(
    client: TestClient, body: dict[str, Any], twins: list[str], path: str
) -> None:
    response = client.post(f"/api/v1{path}", json={**body, "dataset": "SUMS"})

    problem = response.json()
    assert (response.status_code, problem["error"]) == (422, "ambiguous_name")
    assert [each["field"] for each in problem["details"]] == ["dataset"]
    assert all(each in problem["message"] for each in (*twins, "'Sums'", "'sums'"))


def test_a_name_of_nothing_is_refused_as_an_unknown_id_is(client: TestClient, body: dict[str, Any]) -> None:
    found = {
        field: client.post("/api/v1/jobs", json={**body, field: "no such thing"}).json()["error"]
        for field in ("model", "dataset", "validation_dataset")
    }

    assert found == {
        "model": "unknown_model",
        "dataset": "unknown_dataset",
        "validation_dataset": "unknown_dataset",
    }


def test_sweeps_and_workflows_keep_the_ids_of_what_they_call_by_name(
    client: TestClient, body: dict[str, Any], model: Model, dataset: Dataset
) -> None:
    job = {key: value for key, value in body.items() if key != "name"}
    sweep = {
        "name": "rates",
        "job": job,
        "parameters": {"learning_rate": {"values": [1e-5, 1e-4]}},
        "search": {"method": "grid"},
        "objective": {"metric": "critic/score/mean"},
    }
    stage = {**job, "id": "train", "model": {"base": model.name}}

    made = post(client, "/sweeps", sweep)
    pipeline = post(client, "/job-pipelines", {"name": "one", "stages": [stage]})

    assert (made["model"]["id"], made["dataset"]["id"]) == (model.id, dataset.id)
    stages = pipeline["stages"]
    assert stages
    assert model.name not in str(stages)


def test_parameters_name_agent_code(client: TestClient, body: dict[str, Any]) -> None:
    agent = post(client, "/workflows", {"name": "shop", "code": AGENT_CODE})

    preview = post(
        client,
        "/jobs/preview",
        {**body, "recipe": "tune", "preset": None, "params": {"workflow": "shop"}},
    )

    assert preview["params"]["workflow"] == agent["id"]


def test_rewards_name_uploaded_files(client: TestClient, body: dict[str, Any]) -> None:
    code = "def score(prompt, response, truth, extra):\n    return 1.0\n"
    file = post(client, "/rewards/files", {"name": "ones", "code": code})
    rewards = [{"name": "python", "options": {"file": "ones"}}]

    preview = post(client, "/jobs/preview", {**body, "params": {"rewards": rewards}})

    assert [term["options"]["file"] for term in preview["rewards"]] == [file["id"]]


def test_evaluations_measure_models_by_name(client: TestClient, model: Model, dataset: Dataset) -> None:
    benchmark = {
        "benchmark": "custom",
        "dataset": dataset.name,
        "columns": {"prompt": "question", "answer": "answer"},
        "scorer": {"kind": "exact"},
    }
    plan = {"targets": [{"kind": "model", "model": model.name}], "benchmarks": [benchmark]}

    made = post(client, "/evaluations", {**plan, "name": "by name"})["items"]

    assert made[0]["target"]["model"]["id"] == model.id
    assert [each["id"] for each in made[0]["datasets"].values()] == [dataset.id]


def test_benchmarks_are_scored_by_a_reward_file_by_name(
    client: TestClient, model: Model, dataset: Dataset
) -> None:
    code = "def score(prompt, response, answer, row):\n    return 1.0\n"
    file = post(client, "/rewards/files", {"name": "ones", "code": code})
    benchmark = {
        "benchmark": "custom",
        "dataset": dataset.name,
        "columns": {"prompt": "question", "answer": "answer"},
        "scorer": {"kind": "file", "file": "ones"},
    }
    plan = {"targets": [{"kind": "model", "model": model.name}], "benchmarks": [benchmark]}

    made = post(client, "/evaluations", {**plan, "name": "by name"})["items"]

    assert made[0]["benchmarks"][0]["scorer"]["file"] == file["id"]


def test_data_pipelines_run_on_datasets_by_name(client: TestClient, dataset: Dataset) -> None:
    pipeline = {"name": "trim", "steps": []}

    checked = post(client, "/pipelines/validate", {"pipeline": pipeline, "dataset": dataset.name})

    assert checked == post(client, "/pipelines/validate", {"pipeline": pipeline, "dataset": dataset.id})


def test_a_version_of_a_named_model_is_a_model_by_name(client: TestClient, model: Model) -> None:
    made = post(client, "/registry", {"name": "support", "model": model.name})

    assert made["versions"][0]["model"] == model.id
