"""Workflow files, as the API takes and refuses them."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session
from trellis_api.core.columns import utc_now
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model
from trellis_api.workflows.source_check import NoWorkflow, find_function
from trellis_contracts.states import JobState

CODE = "async def workflow(task, model):\n    return 1.0\n"
PATH = "/api/v1/workflows"


@pytest.fixture
def workflow_id(client: TestClient) -> str:
    return str(client.post(PATH, json={"name": "mine", "code": CODE}).json()["id"])


def test_a_file_is_kept_listed_read_and_forgotten(client: TestClient, workflow_id: str) -> None:
    (listed,) = client.get(PATH).json()["items"]
    read = client.get(f"{PATH}/{workflow_id}").json()

    assert (listed["id"], listed["name"], listed["function"]) == (workflow_id, "mine", "workflow")
    assert read["code"] == CODE
    assert listed == {**listed, **{name: value for name, value in read.items() if name != "code"}}
    assert (listed["job_count"], listed["jobs"], listed["used_by"]) == (0, [], [])
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


def test_all_faults_of_a_file_are_told_at_once(client: TestClient) -> None:
    code = "def workflow(model): ...\nasync def judge(answer): ...\n"

    refused = client.post(PATH, json={"name": "bad", "code": code}).json()

    said = [(each["field"], each["message"]) for each in refused["details"]]
    assert [field for field, _ in said] == ["code"] * 3
    for (_, message), expected in zip(
        said, ("must be async", "workflow(task, model)", "judge(task, response)"), strict=True
    ):
        assert expected in message
    # Whoever shows nothing but the message learns all of them.
    assert refused["message"] == " ".join(["The file has 3 faults.", *(message for _, message in said)])


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("def workflow(", "Line 1"),
        ("x = 1", "0 async functions"),
        ("async def workflow(model, task): ...", "with these names in order"),
        ("async def workflow(task, model, *more): ...", "with these names in order"),
        ("async def workflow(*, task, model): ...", "task, model may not be keyword-only"),
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


def test_the_list_tells_what_a_workflow_is_used_by(
    client: TestClient, workflow_id: str, make_job: Callable[..., str]
) -> None:
    params = {"workflow": workflow_id}
    for number in range(4):
        make_job(name=f"done {number}", state=JobState.SUCCEEDED, params=params)
    running = make_job(name="now", state=JobState.RUNNING, params=params)
    make_job(name="other", params={"workflow": "wfl_other"})
    make_job(name="none")

    (listed,) = client.get(PATH).json()["items"]

    assert (listed["job_count"], listed["used_by"]) == (5, ["now"])
    assert listed["jobs"][0] == {"id": running, "name": "now"}
    assert [each["name"] for each in listed["jobs"]] == ["now", "done 3", "done 2"]
    refused = client.delete(f"{PATH}/{workflow_id}")
    assert (refused.status_code, refused.json()["error"]) == (409, "workflow_in_use")


def test_of_many_jobs_of_many_workflows_only_those_that_are_shown_are_read(
    client: TestClient, session: Session, make_job: Callable[..., str], workflow_id: str
) -> None:
    other = client.post(PATH, json={"name": "other", "code": CODE}).json()["id"]
    moment = utc_now()
    same = [make_job(params={"workflow": workflow_id}, created_at=moment) for _ in range(6)]
    last = make_job(params={"workflow": other})

    listed = {each["id"]: each for each in client.get(PATH).json()["items"]}

    assert (listed[workflow_id]["job_count"], listed[other]["job_count"]) == (6, 1)
    assert [each["id"] for each in listed[workflow_id]["jobs"]] == sorted(same, reverse=True)[:3]
    assert [each["id"] for each in listed[other]["jobs"]] == [last]
