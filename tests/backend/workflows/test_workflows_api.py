"""Workflow files, as the API takes and refuses them."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_api.workflows.source_check import NoWorkflow, find_function

CODE = "async def workflow(task, model):\n    return 1.0\n"
PATH = "/api/v1/workflows"


@pytest.fixture
def workflow_id(client: TestClient) -> str:
    return str(client.post(PATH, json={"name": "mine", "code": CODE}).json()["id"])


def test_a_file_is_kept_listed_read_and_forgotten(client: TestClient, workflow_id: str) -> None:
    (listed,) = client.get(PATH).json()["items"]
    read = client.get(f"{PATH}/{workflow_id}").json()

    assert (listed["id"], listed["name"], listed["function"]) == (workflow_id, "mine", "workflow")
    assert read == {**listed, "code": CODE}
    assert client.delete(f"{PATH}/{workflow_id}").status_code == 204
    assert client.get(f"{PATH}/{workflow_id}").json()["error"] == "workflow_not_found"
    assert client.delete(f"{PATH}/wfl_nonsense").status_code == 404


def test_a_name_is_taken_once(client: TestClient, workflow_id: str) -> None:
    refused = client.post(PATH, json={"name": "mine", "code": CODE})
    assert (refused.status_code, refused.json()["error"]) == (409, "workflow_name_taken")


def test_what_has_no_workflow_is_refused_and_never_run(client: TestClient) -> None:
    refused = client.post(
        PATH, json={"name": "bad", "code": "raise SystemExit\ndef workflow(task, model): ..."}
    )
    assert (refused.status_code, refused.json()["error"]) == (422, "workflow_invalid")
    assert "must be async" in refused.json()["message"]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("def workflow(", "Line 1"),
        ("x = 1", "0 async functions"),
        ("async def workflow(model, task): ...", "with these names in order"),
        ("async def workflow(task, model, *more): ...", "with these names in order"),
        ("async def workflow(task, model): ...\ndef judge(task, response): ...", "judge must be async"),
        ("async def a(task, model): ...\nasync def b(task, model): ...", "2 async functions"),
    ],
)
def test_each_fault_is_named(code: str, problem: str) -> None:
    with pytest.raises(NoWorkflow, match=problem):
        find_function(code)


def test_the_workflow_is_found_by_name_or_alone() -> None:
    two = "async def a(task, model): ...\nasync def b(task, model): ..."
    assert find_function(two, "b") == "b"
    assert find_function(f"{two}\n{CODE}") == "workflow"
    assert find_function("async def solve(task, model): ...\nasync def judge(task, response): ...") == "solve"
    with pytest.raises(NoWorkflow, match="no function c"):
        find_function(two, "c")


@pytest.fixture
def body(model: Model, dataset: Dataset, workflow_id: str) -> dict[str, Any]:
    """A job that can run."""
    return {
        "name": "agent",
        "recipe": "tune",
        "preset": "cpu-tiny",
        "model": model.id,
        "dataset": dataset.id,
        "params": {"workflow": workflow_id},
    }


def test_a_job_trains_an_uploaded_workflow_which_stays_as_long(
    client: TestClient, body: dict[str, Any], workflow_id: str
) -> None:
    created = client.post("/api/v1/jobs", json=body)
    assert created.status_code == 201, created.text

    refused = client.delete(f"{PATH}/{workflow_id}")

    assert (refused.status_code, refused.json()["error"]) == (409, "workflow_in_use")
    assert refused.json()["details"]["jobs"] == ["agent"]


def test_a_workflow_stays_while_a_pipeline_under_way_is_going_to_train_with_it(
    client: TestClient, body: dict[str, Any], workflow_id: str
) -> None:
    stage = {
        "id": "agent",
        "kind": "train",
        "recipe": "tune",
        "preset": "cpu-tiny",
        "model": {"base": body["model"]},
        "dataset": body["dataset"],
        "params": {"workflow": workflow_id},
    }
    created = client.post("/api/v1/job-pipelines", json={"name": "later", "stages": [stage]})
    assert created.status_code == 201, created.text

    refused = client.delete(f"{PATH}/{workflow_id}")

    assert (refused.status_code, refused.json()["error"]) == (409, "workflow_in_use")
    assert refused.json()["details"]["jobs"] == ["later"]


@pytest.mark.parametrize(
    ("params", "code"),
    [({"workflow": "wfl_aaaaaaaaaaaa"}, "unknown_workflow"), ({}, "workflow_missing")],
)
def test_a_job_without_its_workflow_is_refused(
    client: TestClient, body: dict[str, Any], params: dict[str, Any], code: str
) -> None:
    refused = client.post("/api/v1/jobs", json={**body, "params": params})
    previewed = client.post("/api/v1/jobs/preview", json={**body, "params": params}).json()

    assert refused.status_code == 422
    assert code in refused.text
    assert [issue["code"] for issue in previewed["errors"]] == [code]
    assert previewed["errors"][0]["field"] == "params.workflow"
