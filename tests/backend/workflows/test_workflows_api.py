"""Workflow files, as the API takes and refuses them."""

import base64
import io
import tarfile
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.models import Checkpoint
from trellis_api.jobs.queue.admission import claim_next
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_recipes.workflows.source import NoWorkflow, find_function

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
    assert refused["message"] == " ".join(["The file has 3 errors.", *(message for _, message in said)])


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


# -- packages


def upload(client: TestClient, content: bytes, name: str = "agent.tgz") -> str:
    headers = {
        "Tus-Resumable": "1.0.0",
        "Upload-Length": str(len(content)),
        "Upload-Metadata": f"filename {base64.b64encode(name.encode()).decode()}",
    }
    place = client.post("/api/v1/uploads", headers=headers).headers["Location"]
    piece = {
        "Tus-Resumable": "1.0.0",
        "Upload-Offset": "0",
        "Content-Type": "application/offset+octet-stream",
    }
    assert client.patch(place, content=content, headers=piece).status_code == 204
    return place.rpartition("/")[2]


def make_archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def add_package(client: TestClient, files: dict[str, str], name: str = "package") -> Any:
    body = {"name": name, "upload": upload(client, make_archive(files))}
    return client.post(PATH, json=body)


def test_a_package_is_unpacked_read_and_forgotten_with_its_files(
    client: TestClient, settings: Settings
) -> None:
    created = add_package(client, {"a/workflow.py": CODE, "a/lib/data.json": "[]"})
    assert created.status_code == 201, created.text
    made = created.json()
    folder = settings.data_root / "workflows" / made["id"]

    assert (made["state"], made["requirements"], made["installed"]) == ("ready", [], None)
    assert made["files"] == {"lib/data.json": 2, "workflow.py": len(CODE)}
    assert client.get(f"{PATH}/{made['id']}").json()["code"] == CODE
    assert (folder / "lib" / "data.json").read_text() == "[]"
    assert client.delete(f"{PATH}/{made['id']}").status_code == 204
    assert not folder.exists()


def test_a_package_with_requirements_waits_for_a_worker_and_no_job_takes_it_before(
    client: TestClient, body: dict[str, Any]
) -> None:
    made = add_package(client, {"workflow.py": CODE, "requirements.txt": "tiny==1.0\n"}).json()

    refused = client.post("/api/v1/jobs", json={**body, "params": {"workflow": made["id"]}})

    assert (made["state"], made["requirements"]) == ("queued", ["tiny==1.0"])
    assert (refused.status_code, refused.json()["error"]) == (422, "workflow_not_ready")
    again = client.post(f"{PATH}/{made['id']}/retry")
    assert (again.status_code, again.json()["error"]) == (409, "workflow_not_retryable")


def test_a_package_that_cannot_be_leaves_nothing(client: TestClient, settings: Settings) -> None:
    refused = add_package(client, {"other.py": CODE})
    leaves = add_package(client, {"workflow.py": CODE, "../x.py": CODE})
    add_package(client, {"workflow.py": CODE})
    taken = add_package(client, {"workflow.py": CODE})

    assert (refused.status_code, refused.json()["error"]) == (422, "workflow_invalid")
    assert "no workflow.py at the top level" in refused.json()["message"]
    assert "no path within the package" in leaves.json()["message"]
    assert (taken.status_code, taken.json()["error"]) == (409, "workflow_name_taken")
    assert len(list((settings.data_root / "workflows").iterdir())) == 1


def test_either_code_or_an_upload_is_given(client: TestClient) -> None:
    assert client.post(PATH, json={"name": "x"}).status_code == 422
    assert client.post(PATH, json={"name": "x", "code": CODE, "upload": "up_x"}).status_code == 422
    missing = client.post(PATH, json={"name": "x", "upload": "up_aaaaaaaaaaaa"})
    assert (missing.status_code, missing.json()["error"]) == (404, "upload_not_found")


# -- what a job hands its workflow beside the policy

WITH_MODELS = "async def workflow(task, model, auxiliary_models):\n    return 1.0\n"


def test_a_workflow_that_takes_other_models_needs_some_that_are_there(
    client: TestClient, body: dict[str, Any], model: Model
) -> None:
    made = client.post(PATH, json={"name": "critic", "code": WITH_MODELS}).json()["id"]

    def submit(models: str | None) -> tuple[int, str | None]:
        answer = client.post("/api/v1/jobs", json={**body, "params": params(made, models)})
        return answer.status_code, answer.json().get("error")

    assert submit(None) == (422, "auxiliary_models_missing")
    assert submit("critic=nowhere") == (422, "unknown_auxiliary_model")
    assert submit("critic") == (422, "unknown_auxiliary_model")
    assert submit("critic=judge:none") == (422, "unknown_auxiliary_model")
    assert submit(f"critic={model.name}, again={model.id}")[0] == 201


def test_a_model_that_the_agent_code_of_a_job_calls_goes_once_the_job_has_ended(
    client: TestClient, body: dict[str, Any], model: Model, database: Database
) -> None:
    critic = Model(**{**model.model_dump(), "id": "mdl_cccccccccccc", "name": "critic"})
    with database.write() as session:
        session.add(critic)
    code = client.post(PATH, json={"name": "critic", "code": WITH_MODELS}).json()["id"]
    named = {**body, "name": "asks", "params": params(code, "critic=critic")}
    job = client.post("/api/v1/jobs", json=named).json()

    refused = client.delete("/api/v1/models/mdl_cccccccccccc")

    assert (refused.status_code, refused.json()["details"]) == (409, {"jobs": ["asks"]})
    client.post(f"/api/v1/jobs/{job['id']}/stop").raise_for_status()
    assert client.delete("/api/v1/models/mdl_cccccccccccc").status_code == 204


def test_a_checkpoint_that_the_agent_code_of_a_job_calls_goes_once_the_job_has_ended(
    client: TestClient, body: dict[str, Any], model: Model, database: Database, make_job: Callable[..., str]
) -> None:
    trained = make_job(state=JobState.SUCCEEDED, model_id=model.id)
    steps = [
        Checkpoint(job_id=trained, step=step, attempt=1, path=f"{step}", size_bytes=1, created_at=utc_now())
        for step in (3, 4)
    ]
    with database.write() as session:
        session.add_all(steps)
    code = client.post(PATH, json={"name": "critic", "code": WITH_MODELS}).json()["id"]
    job = client.post("/api/v1/jobs", json={**body, "params": params(code, f"critic={trained}:3")}).json()

    answers = [client.delete(f"/api/v1/jobs/{trained}/checkpoints/{step}").status_code for step in (3, 4)]

    assert answers == [409, 204]
    client.post(f"/api/v1/jobs/{job['id']}/stop").raise_for_status()
    assert client.delete(f"/api/v1/jobs/{trained}/checkpoints/3").status_code == 204


def start_attempt(session: Session) -> str:
    """The token of the job that is claimed next."""
    claim = claim_next(session, total_slots=4, max_exports=1, max_evaluations=1, max_endpoints=1)
    assert claim is not None
    session.commit()
    return claim.token


def params(workflow: str, models: str | None) -> dict[str, Any]:
    return {"workflow": workflow} | ({"auxiliary_models": models} if models is not None else {})


def test_a_runs_token_asks_for_the_models_of_its_job_alone(
    client: TestClient,
    body: dict[str, Any],
    model: Model,
    session: Session,
    anonymous: TestClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "endpoint_wait_s", 0.3)
    made = client.post(PATH, json={"name": "critic", "code": WITH_MODELS}).json()["id"]
    named = params(made, f"critic={model.name}")
    assert client.post("/api/v1/jobs", json={**body, "params": named}).status_code == 201
    token = start_attempt(session)
    headers = {"Authorization": f"Bearer {token}"}

    def ask(name: str, **given: Any) -> Any:
        request = {"model": name, "messages": [{"role": "user", "content": "1+1"}]}
        return anonymous.post("/v1/chat/completions", json=request, headers=given or headers)

    other = ask("another")
    own = ask(model.name)
    stranger = ask(model.name, Authorization="Bearer nobody")
    listed = anonymous.get("/v1/models", headers=headers)

    assert (other.status_code, "does not name the model" in other.text) == (404, True)
    assert own.status_code not in (401, 404), own.text  # it is not loaded here
    assert (stranger.status_code, listed.status_code) == (401, 401)
