"""Environments from the request to datasets and tools: endpoints, the worker's tasks, the real commands."""

import base64
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.core.columns import utc_now
from trellis_api.environments.folder import environment_folder
from trellis_api.environments.models import Environment, EnvironmentCall
from trellis_api.jobs.models import Job
from trellis_api.main import create_app
from trellis_contracts.states import JobState
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.waiting import wait_until

SMALL = {"profiles": 60, "train": 8, "eval": 3}


@pytest.fixture
def installation(install: Callable[..., Any]) -> Any:
    return install()


@pytest.fixture
def client(installation: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The API on the same database, logged in."""
    app = create_app(installation.settings, installation.database)
    monkeypatch.setattr(app.state.probes, "start", lambda: None)
    token = ensure_admin_token(installation.database, path=installation.settings.admin_token_path)
    with TestClient(app, base_url="http://test/api/v1") as client:
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def make(client: TestClient, name: str = "people", **parameters: Any) -> str:
    body = {"name": name, "kind": "linksearch", "parameters": {**SMALL, **parameters}}
    answer = client.post("/environments", json=body)
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] == "queued"
    return str(answer.json()["id"])


def sweep(installation: Any) -> None:
    """What the worker does when its messages arrive, one after the other."""
    from trellis_workers.environments import calls, make

    make.make_waiting(installation.settings, installation.database)
    finish_data_tasks(installation.settings, installation.database)
    make.take_in_waiting(installation.settings, installation.database)
    calls.call_waiting(installation.settings, installation.database)


def ready(client: TestClient, installation: Any) -> dict[str, Any]:
    environment_id = make(client)
    sweep(installation)
    found: dict[str, Any] = client.get(f"/environments/{environment_id}").json()
    assert found["state"] == "ready", found
    return found


def call(client: TestClient, installation: Any, environment: str, tool: str, **arguments: Any) -> Any:
    answer = client.post(f"/environments/{environment}/calls", json={"tool": tool, "arguments": arguments})
    assert answer.status_code == 202, answer.text
    sweep(installation)
    return client.get(f"/environments/{environment}/calls/{answer.json()['id']}").json()


def fake_python(tmp_path: Path, script: str) -> str:
    """Stands in for the Python of jobs."""
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o755)
    return str(path)


def test_an_environment_becomes_ready_with_tools_and_a_dataset_of_both_splits(
    client: TestClient, installation: Any
) -> None:
    found = ready(client, installation)

    assert [tool["name"] for tool in found["tools"]] == ["search_profile", "read_profile", "return_results"]
    assert found["counts"] == {"profiles": 60, "train_queries": 8, "eval_queries": 3}
    (rows,) = found["datasets"]
    assert rows["splits"] == {"train": 8, "eval": 3}
    dataset = client.get(f"/datasets/{rows['dataset']['id']}").json()
    assert (dataset["name"], dataset["format"]) == ("people", "verl-rl")
    assert found["size_bytes"] > 10_000


def test_the_same_parameters_give_the_same_hash(client: TestClient, installation: Any) -> None:
    first = ready(client, installation)
    second_id, other_id = make(client, "again"), make(client, "other", seed=7)
    sweep(installation)

    assert client.get(f"/environments/{second_id}").json()["sha256"] == first["sha256"]
    assert client.get(f"/environments/{other_id}").json()["sha256"] != first["sha256"]


def test_the_api_refuses_wrong_parameters_unknown_kinds_and_taken_names(client: TestClient) -> None:
    make(client)

    def post(**fields: Any) -> tuple[int, str, Any]:
        answer = client.post("/environments", json={"name": "n", "kind": "linksearch", **fields}).json()
        return answer["error"], answer["message"], answer["details"]

    code, _, details = post(parameters={"profile": 10})
    assert (code, details[0]["code"], details[0]["suggestion"]) == (
        "invalid_environment",
        "unknown_parameter",
        "profiles",
    )
    assert post(kind="castle")[2][0]["code"] == "unknown_environment_kind"
    assert post(name="people")[0] == "environment_name_taken"


def write_own(folder: Path) -> None:
    """A database of one's own and its queries."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "own.db")) as connection:
        connection.executescript(
            "CREATE TABLE profiles (id TEXT, name TEXT, linkedin_handle TEXT);"
            "INSERT INTO profiles VALUES ('a', 'Ada Byron', 'Ada-B'), ('b', 'Alan Turing', 'alan-t')"
        )
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text(f'{{"query": "{split}: Ada?", "answer": "ADA-B"}}\n')


def make_own(client: TestClient, **parameters: Any) -> Any:
    body = {"name": "ours", "kind": "linksearch_database", "parameters": parameters}
    return client.post("/environments", json=body).json()


def upload(client: TestClient, file: Path) -> str:
    data = file.read_bytes()
    name = base64.b64encode(file.name.encode()).decode()
    headers = {
        "Tus-Resumable": "1.0.0", "Upload-Length": str(len(data)), "Upload-Metadata": f"filename {name}"
    }  # fmt: skip
    place = client.post("/uploads", headers=headers).headers["Location"]
    more = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    answer = client.patch(f"/uploads/{place.rpartition('/')[2]}", content=data, headers=more)
    assert answer.status_code == 204, answer.text
    return f"upload:{place.rpartition('/')[2]}"


@pytest.mark.parametrize("is_uploaded", [False, True])
def test_a_database_of_ones_own_becomes_an_environment(
    client: TestClient, installation: Any, is_uploaded: bool
) -> None:
    folder = installation.settings.data_root / "people"
    write_own(folder)
    before = (folder / "own.db").read_bytes()
    database = upload(client, folder / "own.db") if is_uploaded else "people/own.db"

    made = make_own(client, database=database, queries="people")
    sweep(installation)

    found = client.get(f"/environments/{made['id']}").json()
    assert found["state"] == "ready", found
    assert found["counts"] == {"profiles": 2, "train_queries": 1, "eval_queries": 1}
    assert found["datasets"][0]["splits"] == {"train": 1, "eval": 1}
    assert "experiences" not in str(found["tools"])
    answer = call(client, installation, made["id"], "read_profile", linkedin_handle="ADA-b")
    assert answer["result"]["profile"]["name"] == "Ada Byron"
    assert (folder / "own.db").read_bytes() == before
    assert sorted(each.name for each in folder.iterdir()) == ["own.db", "test.jsonl", "train.jsonl"]


@pytest.mark.parametrize(
    ("database", "queries", "codes"),
    [
        (None, None, ["source_missing", "source_missing"]),
        ("people/none.db", "people", ["source_missing"]),
        ("people/train.jsonl", "people", ["source_no_database"]),
        ("../own.db", "people", ["source_outside"]),
        ("trellis.db", "people", ["source_private"]),
        ("jobs/own.db", "people", ["source_private"]),
        ("upload:up_0", "people", ["upload_not_found"]),
        ("people/own.db", "people/own.db", ["source_no_rows"]),
        ("people/own.db", "hub:not a name", ["source_missing"]),
        ("hub:lab/people", "people", ["source_missing"]),
    ],
)
def test_files_that_cannot_be_used_are_refused_before_anything_is_made(
    client: TestClient, installation: Any, database: str | None, queries: str | None, codes: list[str]
) -> None:
    root = installation.settings.data_root
    write_own(root / "people")
    (root / "jobs").mkdir(exist_ok=True)
    for copy in (root / "jobs" / "own.db", root / "trellis.db"):
        if not copy.exists():
            copy.write_bytes((root / "people" / "own.db").read_bytes())

    answer = make_own(client, database=database, queries=queries)

    assert (answer["error"], [issue["code"] for issue in answer["details"]]) == ("invalid_environment", codes)
    assert answer["details"][0]["field"].startswith("parameters.")


def make_toolbox(client: TestClient, root: Path, recorded: str, **given: str) -> Any:
    """An environment of one's own tool, which a file of recorded results stands for."""
    (root / "mine").mkdir(exist_ok=True)
    files = {
        "tools.json": '[{"name": "price", "inputSchema": {"type": "object"}}]',
        "recorded.jsonl": recorded,
        "benchmark.jsonl": '{"query": "Price?", "expected_calls": [{"name": "price", "arguments": {}}]}\n'
        * 2,
    }
    for name, content in files.items():
        (root / "mine" / name).write_text(content)
    sources = {
        "tools": "mine/tools.json",
        "simulator": "mine/recorded.jsonl",
        "benchmark": "mine/benchmark.jsonl",
    }
    body = {"name": "mine", "kind": "own_tools", "parameters": {**sources, **given}}
    return client.post("/environments", json=body).json()


def test_own_tools_with_a_simulator_and_a_benchmark_become_a_toolbox(
    client: TestClient, installation: Any
) -> None:
    made = make_toolbox(client, installation.settings.data_root, '{"tool": "price", "result": 3}')
    sweep(installation)

    found = client.get(f"/environments/{made['id']}").json()
    assert found["state"] == "ready", found
    assert found["counts"] == {"tools": 1, "recorded_results": 1, "benchmark": 2, "pairs": 2}
    splits = {each["name"]: each["splits"] for each in found["datasets"]}
    assert splits == {"": {"train": 1, "eval": 1}, "preference": {"train": 1, "eval": 1}}
    assert call(client, installation, made["id"], "price")["result"] == 3


def test_a_bad_file_of_own_tools_is_refused_with_a_code(client: TestClient, installation: Any) -> None:
    root = installation.settings.data_root
    both = make_toolbox(client, root, "", code="mine/tools.py")
    assert [(each["code"], each["field"]) for each in both["details"]] == [
        ("sources_conflict", "parameters.simulator")
    ]

    made = make_toolbox(client, root, '{"tool": "prize", "result": 3}')
    sweep(installation)

    found = client.get(f"/environments/{made['id']}").json()
    assert (found["state"], found["cause"]) == ("failed", "simulator_invalid")
    assert found["reason"] == "The simulator cannot be used: row 1: unknown tool 'prize'."


def test_one_that_cannot_be_made_says_why_and_is_made_again_when_asked(
    client: TestClient, installation: Any
) -> None:
    environment_id = make(client, profiles=20, train=5_000, most_constraints=1)
    sweep(installation)
    failed = client.get(f"/environments/{environment_id}").json()

    assert (failed["state"], failed["cause"], failed["can_retry"]) == ("failed", "bad_request", True)
    assert "generate more profiles" in failed["reason"]
    again = client.post(f"/environments/{environment_id}/retry").json()
    assert (again["state"], again["reason"]) == ("queued", None)


def test_one_whose_worker_died_is_taken_up_by_the_next(client: TestClient, installation: Any) -> None:
    from trellis_workers.environments.make import LOST_AFTER

    environment_id = make(client)
    with installation.write() as session:
        row = session.get(Environment, environment_id)
        row.state, row.attempt = "making", 1
        row.touched_at = utc_now() - LOST_AFTER + timedelta(seconds=20)
    sweep(installation)
    assert client.get(f"/environments/{environment_id}").json()["state"] == "making"

    with installation.write() as session:
        session.get(Environment, environment_id).touched_at = utc_now() - LOST_AFTER - timedelta(seconds=1)
    sweep(installation)

    found = client.get(f"/environments/{environment_id}").json()
    assert (found["state"], found["attempt"]) == ("ready", 2)


def test_what_a_dead_worker_still_reports_counts_no_more(client: TestClient, installation: Any) -> None:
    """The first worker's child ends after another worker has taken the environment over."""
    from trellis_api.environments import service
    from trellis_contracts.agents import EnvironmentManifest

    environment_id = make(client)
    with installation.write() as session:
        row = session.get(Environment, environment_id)
        row.state, row.attempt, row.touched_at = "making", 2, utc_now()
    manifest = EnvironmentManifest(kind="linksearch", parameters={}, counts={}, tools=[], sha256={})

    with installation.write() as session:
        is_taken = service.record_files(
            session, installation.settings, environment_id=environment_id, attempt=1, manifest=manifest
        )
        service.record_failure(session, environment_id=environment_id, attempt=1, reason="x", cause="x")

    assert not is_taken
    assert client.get(f"/environments/{environment_id}").json()["state"] == "making"


def test_making_has_a_time_limit_and_leaves_no_process(
    client: TestClient, installation: Any, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    script = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    installation.settings.job_python = Path(fake_python(tmp_path, script))
    installation.settings.environment_timeout_s = 1.0
    environment_id = make(client)
    sweep(installation)

    found = client.get(f"/environments/{environment_id}").json()
    assert (found["state"], found["cause"]) == ("failed", "time_limit")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_one_that_is_deleted_while_it_is_made_leaves_nothing(
    client: TestClient, installation: Any, tmp_path: Path
) -> None:
    from trellis_workers.environments import make as making

    installation.settings.job_python = Path(fake_python(tmp_path, "import time; time.sleep(600)"))
    environment_id = make(client)
    worker = Thread(target=making.make_waiting, args=(installation.settings, installation.database))
    worker.start()
    folder = environment_folder(installation.settings, environment_id)
    wait_until(folder.is_dir, 10, "the worker has begun")

    assert client.delete(f"/environments/{environment_id}").status_code == 204
    worker.join(20)
    making.take_in_waiting(installation.settings, installation.database)

    assert not worker.is_alive()
    assert not folder.exists()


def test_a_tool_is_tried_and_answers_as_in_an_episode(client: TestClient, installation: Any) -> None:
    environment = ready(client, installation)["id"]

    found = call(
        client, installation, environment, "search_profile", sql="SELECT name FROM profiles", max_rows=2
    )
    assert (found["state"], found["error"], found["result_count"]) == ("succeeded", None, 2)
    assert len(found["result"]["rows"]) == 2
    assert found["duration_s"] < 5

    listed = client.get(f"/environments/{environment}/calls").json()
    assert [each["id"] for each in listed] == [found["id"]]


def test_a_hostile_statement_succeeds_in_being_refused(client: TestClient, installation: Any) -> None:
    environment = ready(client, installation)["id"]

    found = call(client, installation, environment, "search_profile", sql="SELECT * FROM sqlite_master")

    assert (found["state"], found["error"]) == ("succeeded", "DENIED")
    assert found["result"]["success"] is False


def test_an_unknown_tool_and_one_that_is_not_ready_are_refused_at_once(
    client: TestClient, installation: Any
) -> None:
    waiting = make(client, "waiting")
    answer = client.post(f"/environments/{waiting}/calls", json={"tool": "search_profile"})
    assert (answer.status_code, answer.json()["error"]) == (409, "environment_not_ready")
    sweep(installation)

    answer = client.post(f"/environments/{waiting}/calls", json={"tool": "rm"})

    assert (answer.status_code, answer.json()["error"]) == (422, "unknown_tool")
    assert "search_profile" in answer.json()["message"]


@pytest.mark.parametrize(
    ("script", "cause", "said"),
    [
        ("import time; time.sleep(600)", "time_limit", "Timed out after 1 s"),
        ("import os; os.kill(os.getpid(), 9)", "crashed", "exited with code -9"),
        ("print('no answer')", "no_result", "cannot be read"),
    ],
)
def test_a_call_that_hangs_dies_or_babbles_fails_alone(
    client: TestClient, installation: Any, tmp_path: Path, script: str, cause: str, said: str
) -> None:
    environment = ready(client, installation)["id"]
    real = installation.settings.job_python
    installation.settings.job_python = Path(fake_python(tmp_path, script))
    installation.settings.tool_call_timeout_s = 1.0

    began = time.monotonic()
    found = call(client, installation, environment, "read_profile", linkedin_handle="ada")
    assert (found["state"], found["cause"]) == ("failed", cause)
    assert said in found["reason"]
    assert time.monotonic() - began < 8

    installation.settings.job_python, installation.settings.tool_call_timeout_s = real, 20.0
    after = call(client, installation, environment, "read_profile", linkedin_handle="nobody")
    assert (after["state"], after["error"]) == ("succeeded", "NOT_FOUND")


def test_a_call_whose_worker_died_is_settled(client: TestClient, installation: Any) -> None:
    environment = ready(client, installation)["id"]
    with installation.write() as session:
        session.add(
            EnvironmentCall(
                id="ecl_aaaaaaaaaaaa", environment_id=environment, tool="read_profile", arguments={},
                state="running", started_at=utc_now() - timedelta(minutes=10),
            )
        )  # fmt: skip
    sweep(installation)

    found = client.get(f"/environments/{environment}/calls/ecl_aaaaaaaaaaaa").json()
    assert (found["state"], found["cause"]) == ("failed", "worker_lost")


def test_secrets_in_an_answer_are_not_kept(client: TestClient, installation: Any, tmp_path: Path) -> None:
    environment = ready(client, installation)["id"]
    answer = '{"result": {"note": "key sk-abcdefghijklmnopqrstuvwxyz123456"}, "duration_s": 0.1}'
    installation.settings.job_python = Path(fake_python(tmp_path, f"print({answer!r})"))

    found = call(client, installation, environment, "read_profile", linkedin_handle="ada")

    assert "sk-abcdef" not in str(found["result"])


def test_an_environment_stays_while_an_unfinished_job_names_it(client: TestClient, installation: Any) -> None:
    environment = ready(client, installation)["id"]
    job = installation.add_job(name="searching", params={"environment": environment})

    refused = client.delete(f"/environments/{environment}")
    assert (refused.status_code, refused.json()["error"]) == (409, "environment_in_use")
    assert client.get(f"/environments/{environment}").json()["used_by"] == ["searching"]

    with installation.write() as session:
        end_job(session, job.id)
    folder = environment_folder(installation.settings, environment)
    assert client.delete(f"/environments/{environment}").status_code == 204
    assert not folder.exists()


def end_job(session: Session, job_id: str) -> None:
    job = session.get(Job, job_id)
    assert job is not None
    job.state = JobState.FAILED
    session.add(job)


def launch_body(client: TestClient, environment: str | None, **more: Any) -> dict[str, Any]:
    body = {
        "name": "searching", "recipe": "linksearch", "preset": "cpu-tiny", "model": "mdl_aaaaaaaaaaaa",
        "dataset": "ds_aaaaaaaaaaaa", "params": {"environment": environment},
    }  # fmt: skip
    return {**body, **more}


def show_tools(installation: Any, template: str) -> None:
    """Let the model's chat template be that."""
    folder = installation.settings.data_root / "models" / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


def test_a_model_whose_chat_template_shows_no_tools_is_refused_or_given_one(
    client: TestClient, installation: Any
) -> None:
    environment = ready(client, installation)
    dataset = environment["datasets"][0]["dataset"]["id"]
    body = launch_body(client, environment["id"], dataset=dataset, validation_split="eval")
    show_tools(installation, "{% for m in messages %}{{ m.content }}{% endfor %}")
    given = {**body, "params": {**body["params"], "tool_template": "hermes"}}

    refused = client.post("/jobs", json=body)
    previewed = client.post("/jobs/preview", json=body).json()
    allowed = client.post("/jobs", json=given)
    show_tools(installation, "{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}")
    knows = client.post("/jobs", json=body)

    assert (refused.status_code, refused.json()["error"]) == (422, "tools_not_shown")
    assert refused.json()["details"][0]["field"] == "model"
    assert "tools_not_shown" in [issue["code"] for issue in previewed["errors"]]
    assert (allowed.status_code, knows.status_code) == (201, 201), allowed.text


def test_a_job_is_told_the_folder_of_its_environment_and_the_options_of_its_agent(
    client: TestClient, installation: Any
) -> None:
    from trellis_workers.jobs.launch import _write_attempt

    environment = ready(client, installation)
    show_tools(installation, "{{ tools }}")
    dataset = environment["datasets"][0]["dataset"]["id"]
    body = launch_body(client, environment["id"], dataset=dataset, validation_split="eval")
    body["params"]["max_turns"] = 3
    answer = client.post("/jobs", json=body)
    assert answer.status_code == 201, answer.text

    job = installation.get_job(answer.json()["id"])
    spec = _write_attempt(installation.settings, job, "token")

    assert spec.agent is not None
    assert (spec.agent.kind, spec.agent.options["max_turns"]) == ("linksearch", 3)
    assert "environment" not in spec.agent.options
    assert (Path(spec.agent.environment_path or "") / "profiles.db").is_file()


@pytest.mark.parametrize(
    ("state", "kind", "error", "status"),
    [
        ("making", "linksearch", "environment_not_ready", 409),
        ("failed", "linksearch", "environment_not_ready", 409),
        ("ready", "maths", "unsuitable_environment", 422),
        (None, "", "unknown_environment", 422),
    ],
)
def test_a_job_in_an_environment_that_cannot_be_used_is_refused_with_the_field(
    client: TestClient, installation: Any, state: str | None, kind: str, error: str, status: int
) -> None:
    environment_id = "env_aaaaaaaaaaaa"
    if state is not None:
        with installation.write() as session:
            session.add(Environment(id=environment_id, name="people", kind=kind, parameters={}, state=state))

    answer = client.post("/jobs", json=launch_body(client, environment_id))
    previewed = client.post("/jobs/preview", json=launch_body(client, environment_id)).json()

    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json()["details"][0]["field"] == "params.environment"
    assert error in [issue["code"] for issue in previewed["errors"]]


def test_what_a_model_descends_from_names_the_environment(client: TestClient, installation: Any) -> None:
    from trellis_api.jobs.exports.training import describe_training

    environment = ready(client, installation)
    job = installation.add_job(recipe="linksearch", params={"environment": environment["id"]})
    with installation.read() as session:
        training = describe_training(session, job=job, step=1)

    assert (training.environment_name, training.environment_sha256) == ("people", environment["sha256"])
    nodes = client.get("/models/mdl_aaaaaaaaaaaa/lineage").json()["nodes"]
    assert [node["name"] for node in nodes if node["kind"] == "environment"] == ["people"]


@pytest.mark.parametrize(
    ("said", "exit_code", "reason", "cause"),
    [
        ("warning\ncode: tools_invalid\nTool 1: no.\n", 65, "Tool 1: no.", "tools_invalid"),
        ("code: tools_invalid\nTool 1: no.\na late warning\n", 65, "Tool 1: no.", "tools_invalid"),
        ("What is wrong.\n", 65, "What is wrong.", "bad_request"),
        ("code: mine\nKilled\n", 1, "Killed", "crashed"),
    ],
)
def test_code_and_sentence_of_a_child_are_found_in_its_log(
    said: str, exit_code: int, reason: str, cause: str, tmp_path: Path
) -> None:
    from trellis_workers.environments import child

    (tmp_path / "log").write_text(said)

    with pytest.raises(child.ChildFailed) as failure:
        child._check(exit_code, tmp_path / "log")
    assert (str(failure.value), failure.value.cause) == (reason, cause)
