"""The catalogue, own files and dry runs, as the API takes and refuses them."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.rewards.availability import probe_sandbox, record_probe
from trellis_api.rewards.models import SandboxProbe
from trellis_api.rewards.source_check import find_problem
from trellis_contracts.endpoints import JudgeEndpoint

CODE = "def score(prompt, response, answer, row):\n    return 1.0\n"


def record(database: Database, **problems: str | None) -> None:
    """Probes by the name of the machine."""
    with database.write() as session:
        for hostname, problem in problems.items():
            record_probe(session, hostname=hostname, problem=problem)


@pytest.fixture
def file_id(client: TestClient) -> str:
    return str(client.post("/api/v1/rewards/files", json={"name": "mine", "code": CODE}).json()["id"])


def test_the_catalogue_says_what_cannot_be_used_here(client: TestClient, settings: Settings) -> None:
    kinds = {each["name"]: each for each in client.get("/api/v1/rewards").json()["items"]}

    assert kinds["math"]["unavailable"] is None
    assert "TRELLIS_JUDGES" in kinds["judge"]["unavailable"]["en"]
    assert {option["name"] for option in kinds["python"]["options"]} == {"file", "timeout_s", "memory_mb"}


def test_judges_are_named_but_not_shown(client: TestClient, settings: Settings) -> None:
    settings.judges["strict"] = JudgeEndpoint(base_url="http://judge.test/v1", model="m", key_variable="K")
    try:
        text = client.get("/api/v1/rewards").text
        judge = next(
            each for each in client.get("/api/v1/rewards").json()["items"] if each["name"] == "judge"
        )
    finally:
        settings.judges.clear()

    assert judge["unavailable"] is None
    assert next(each for each in judge["options"] if each["name"] == "endpoint")["choices"] == ["strict"]
    assert "judge.test" not in text


def test_a_file_is_kept_as_it_is(client: TestClient, file_id: str) -> None:
    found = client.get(f"/api/v1/rewards/files/{file_id}").json()
    listed = client.get("/api/v1/rewards/files").json()["items"]

    assert found["code"] == CODE
    assert [each["id"] for each in listed] == [file_id]
    assert "code" not in listed[0]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def score(:", "Line 1"),
        ("x = 1", "doesn't define score"),
        ("def score(prompt, response): return 1", "score(prompt, response, answer, row)"),
        ("async def score(prompt, response, answer, row): return 1", "async"),
        ("def score(a, b, c, d, e): return 1", "score(prompt"),
        ("def score(a, b, c, d, *, e): return 1", "score(prompt"),
        ("x = " + "(" * 5_000, "cannot be parsed"),
        ("import sys\nclass Score: pass", "doesn't define score"),
        (f"PARTS = 7\n{CODE}", "Line 1: PARTS must be a list of names"),
    ],
)
def test_a_file_that_cannot_be_a_reward_is_refused(client: TestClient, code: str, message: str) -> None:
    answer = client.post("/api/v1/rewards/files", json={"name": "bad", "code": code})

    assert (answer.status_code, answer.json()["error"]) == (422, "reward_file_invalid")
    assert message in answer.json()["message"] or "too many nested" in answer.json()["message"]


@pytest.mark.parametrize("code", ["def score(*args): return 1", "def score(a, b, c, d=None, e=1): return 1"])
def test_other_signatures_that_fit_are_taken(code: str) -> None:
    assert find_problem(code) is None


def test_nothing_of_a_file_is_executed(client: TestClient) -> None:
    code = f"import sys\nsys.modules['trellis_test_marker'] = sys\n{CODE}"

    assert client.post("/api/v1/rewards/files", json={"name": "marker", "code": code}).status_code == 201
    assert "trellis_test_marker" not in sys.modules


def test_a_file_of_more_than_256_kib_is_refused(client: TestClient) -> None:
    answer = client.post("/api/v1/rewards/files", json={"name": "big", "code": CODE + "#" * 300_000})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")


def test_names_are_unique(client: TestClient, file_id: str) -> None:
    answer = client.post("/api/v1/rewards/files", json={"name": "mine", "code": CODE})

    assert (answer.status_code, answer.json()["error"]) == (409, "reward_file_name_taken")


def dry_run(client: TestClient, rewards: list[dict[str, Any]], **fields: Any) -> Any:
    return client.post(
        "/api/v1/rewards/dry-runs", json={"rewards": rewards, "dataset": "ds_aaaaaaaaaaaa", **fields}
    )


@pytest.mark.parametrize(
    ("rewards", "status", "error"),
    [
        ([{"name": "maths"}], 422, "invalid_rewards"),
        ([{"name": "regex"}], 422, "invalid_rewards"),
        ([{"name": "python", "options": {"file": "rwf_aaaaaaaaaaaa"}}], 422, "unknown_reward_file"),
        ([{"name": "reward_model", "options": {"model": "/etc"}}], 422, "unknown_reward_model"),
        ([{"name": "judge", "options": {"endpoint": "x"}}], 409, "reward_unavailable"),
        ([{"name": "regex", "options": {"pattern": "sk-" + "a" * 30}}], 422, "invalid_request"),
        ([{"name": "exact"}], 422, "unknown_dataset"),
    ],
)
def test_a_dry_run_that_cannot_work_is_refused(
    client: TestClient,
    rewards: list[dict[str, Any]],
    status: int,
    error: str,
) -> None:
    answer = dry_run(client, rewards)

    assert (answer.status_code, answer.json()["error"]) == (status, error)


def test_without_a_sandbox_own_code_is_refused(client: TestClient, database: Database, file_id: str) -> None:
    record(database, worker="bubblewrap (bwrap) is not installed")

    answer = dry_run(client, [{"name": "python", "options": {"file": file_id}}])

    assert (answer.status_code, answer.json()["error"]) == (409, "reward_unavailable")
    assert "bubblewrap" in answer.json()["message"]


def test_the_catalogue_shows_what_the_workers_have_found_out(client: TestClient, database: Database) -> None:
    def unavailable() -> set[str]:
        kinds = client.get("/api/v1/rewards").json()["items"]
        return {kind["name"] for kind in kinds if kind["unavailable"] and kind["runs_code"]}

    before = unavailable()
    record(database, first="bubblewrap (bwrap) is not installed", second="it needs Linux")
    without = unavailable()
    record(database, second=None)

    assert (before, without, unavailable()) == (set(), {"code", "python"}, set())


def test_a_machine_that_was_not_heard_of_for_long_does_not_count(database: Database) -> None:
    record(database, old="bubblewrap (bwrap) is not installed")
    with database.write() as session:
        row = session.get(SandboxProbe, "old")
        assert row is not None
        row.probed_at = utc_now() - timedelta(days=8)
        session.add(row)

    record(database, new=None)

    with database.read() as session:
        assert session.get(SandboxProbe, "old") is None


def test_nothing_is_started_while_a_job_is_submitted(
    client: TestClient, file_id: str, model: Any, dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any, **_named: Any) -> None:
        raise AssertionError("a process is started inside a request")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    rewards = [{"name": "python", "options": {"file": file_id}}]

    created = client.post("/api/v1/jobs", json=job_request(model, dataset, rewards))

    assert created.status_code == 201, created.text


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("exit 0", None),
        ("echo bubblewrap is refused; exit 1", "bubblewrap is refused"),
        ("echo Traceback >&2; echo ImportError >&2; exit 3", "ImportError"),
        ("exit 9", "the probe left with exit code 9"),
    ],
)
def test_the_probe_tells_what_the_training_side_says(tmp_path: Path, script: str, found: str | None) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)

    assert probe_sandbox(str(python)) == found


def test_a_queued_dry_run_can_be_cancelled_and_forgotten(client: TestClient, dataset: Any) -> None:
    created = dry_run(client, [{"name": "exact"}], dataset=dataset.id).json()

    cancelled = client.post(f"/api/v1/rewards/dry-runs/{created['id']}/cancel").json()
    removed = client.delete(f"/api/v1/rewards/dry-runs/{created['id']}")

    assert (created["state"], created["can_cancel"]) == ("queued", True)
    assert (cancelled["state"], cancelled["can_cancel"]) == ("cancelled", False)
    assert removed.status_code == 204
    assert client.get(f"/api/v1/rewards/dry-runs/{created['id']}").status_code == 404


def job_request(model: Any, dataset: Any, rewards: list[dict[str, Any]]) -> dict[str, Any]:
    params = {"rewards": rewards, "validation_rows": 0}
    return {
        "name": "own reward", "recipe": "grpo", "preset": "cpu-tiny",
        "model": model.id, "dataset": dataset.id, "params": params,
    }  # fmt: skip


def test_a_job_holds_the_file_that_it_scores_with(
    client: TestClient, file_id: str, model: Any, dataset: Any
) -> None:
    rewards = [{"name": "python", "options": {"file": file_id}}]

    created = client.post("/api/v1/jobs", json=job_request(model, dataset, rewards))
    refused = client.delete(f"/api/v1/rewards/files/{file_id}")

    assert created.status_code == 201, created.text
    assert (refused.status_code, refused.json()["error"]) == (409, "reward_file_in_use")
    assert refused.json()["details"]["jobs"] == ["own reward"]


def test_a_job_with_a_file_that_is_gone_is_refused(
    client: TestClient, file_id: str, model: Any, dataset: Any
) -> None:
    rewards = [{"name": "python", "options": {"file": file_id}}]
    client.delete(f"/api/v1/rewards/files/{file_id}")

    answer = client.post("/api/v1/jobs", json=job_request(model, dataset, rewards))
    preview = client.post("/api/v1/jobs/preview", json=job_request(model, dataset, rewards)).json()

    assert (answer.status_code, answer.json()["error"]) == (422, "unknown_reward_file")
    assert ("unknown_reward_file", "params.rewards.0.options.file") in {
        (issue["code"], issue["field"]) for issue in preview["errors"]
    }


def test_a_policy_is_no_reward_model(client: TestClient, model: Any, dataset: Any) -> None:
    rewards = [{"name": "reward_model", "options": {"model": model.id}}]

    answer = client.post("/api/v1/jobs", json=job_request(model, dataset, rewards))

    assert (answer.status_code, answer.json()["error"]) == (422, "unknown_reward_model")
