"""Dry runs from the request to the result: the API's endpoints, the worker's task, the scoring child."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.jobs.models import RolloutSample
from trellis_api.main import create_app
from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.datasets import add_version

ROWS = 40
DATASET = "ds_aaaaaaaaaaaa"
GOOD_FILE = """
PARTS = ["length"]

def score(prompt, response, answer, row):
    return {"score": float(bool(answer) and answer in response), "length": len(response)}
"""
MOODY_FILE = """
import random

def score(prompt, response, answer, row):
    return random.random() if response else 0.0
"""
HANGING_FILE = """
import time

def score(prompt, response, answer, row):
    time.sleep(3600)
"""
RAISING_FILE = """
def score(prompt, response, answer, row):
    if not response:
        raise ValueError("nothing to score")
    return 1.0
"""


@pytest.fixture
def installation(install: Callable[..., Any]) -> Any:
    """A platform with a dataset that can be read."""
    installation = install()
    publish(
        installation,
        [
            {"prompt": f"{number} + 1", "answer": f"{number} + 1 = {number + 1}\n#### {number + 1}"}
            for number in range(ROWS)
        ],
    )
    return installation


def publish(installation: Any, rows: list[dict[str, Any]]) -> str:
    """The next version of the dataset that dry runs read; its id."""
    with installation.database.write() as session:
        return add_version(session, installation.settings, DATASET, rows).id


@pytest.fixture
def client(installation: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The API on the same database, logged in."""
    app = create_app(installation.settings, installation.database)
    monkeypatch.setattr(app.state.probes, "start", lambda: None)
    token = ensure_admin_token(installation.database, path=installation.settings.admin_token_path)
    with TestClient(app, base_url="http://test/api/v1") as client:
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def start(client: TestClient, rewards: list[dict[str, Any]], **fields: Any) -> str:
    body = {"rewards": rewards, "dataset": "ds_aaaaaaaaaaaa", "rows": 16, **fields}
    answer = client.post("/rewards/dry-runs", json=body)
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] == "queued"
    return str(answer.json()["id"])


def work() -> None:
    """What a worker does when the message arrives."""
    from trellis_workers.rewards.tasks import run_dry_runs

    run_dry_runs()


def upload(client: TestClient, code: str) -> str:
    answer = client.post("/rewards/files", json={"name": f"file {time.monotonic_ns()}", "code": code})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def python(file_id: str, **options: Any) -> dict[str, Any]:
    return {"name": "python", "options": {"file": file_id, **options}}


def test_a_mixture_is_scored_on_every_probe(client: TestClient) -> None:
    dry_run = start(client, [{"name": "gsm8k"}, python(upload(client, GOOD_FILE)) | {"weight": 0.5}])

    work()

    found = client.get(f"/rewards/dry-runs/{dry_run}").json()
    assert found["state"] == "succeeded", found
    assert found["progress"]["done"] == found["progress"]["total"] > 0
    probes = {each["probe"]: each for each in found["result"]["probes"]}
    assert probes["gold"]["mean"] == pytest.approx(1.5)
    means = probes["gold"]["term_means"]
    assert (means["gsm8k"], means["python"]) == (1.0, 1.0)
    assert probes["repeated"]["term_means"]["python_length"] == pytest.approx(3 * means["python_length"] + 2)
    assert probes["answer"]["mean"] == pytest.approx(0.5)  # a bare number is no GSM8K answer
    assert probes["empty"]["maximum"] == 0.0
    assert probes["truncated"]["term_means"]["gsm8k"] == 0.0  # the marks are in the second half
    assert probes["repeated"]["mean"] == pytest.approx(1.5)
    assert probes["format_only"]["maximum"] == 0.0
    assert probes["wrong"]["correct_share"] == 0.0
    assert sum(probes["gold"]["histogram"]) == probes["gold"]["count"] == 16
    assert found["result"]["is_deterministic"]
    assert found["result"]["warnings"] == []


def test_errors_are_shown_with_their_row_and_message(client: TestClient) -> None:
    dry_run = start(client, [python(upload(client, RAISING_FILE))])

    work()

    result = client.get(f"/rewards/dry-runs/{dry_run}").json()["result"]
    empty = next(each for each in result["probes"] if each["probe"] == "empty")
    assert empty["error_count"] == 16
    assert "nothing to score" in empty["errors"][0]["message"]
    assert "errors" in {warning["code"] for warning in result["warnings"]}


def test_a_file_that_scores_by_chance_is_told_as_such(client: TestClient) -> None:
    dry_run = start(client, [python(upload(client, MOODY_FILE))], rows=4)

    work()

    result = client.get(f"/rewards/dry-runs/{dry_run}").json()["result"]
    probes = {each["probe"]: each for each in result["probes"]}
    assert not result["is_deterministic"]
    assert (probes["gold"]["is_deterministic"], len(probes["gold"]["changed_rows"])) == (False, 4)
    assert (probes["empty"]["is_deterministic"], probes["empty"]["changed_rows"]) == (True, [])
    assert "not_deterministic" in {warning["code"] for warning in result["warnings"]}


def test_rewards_that_pay_for_the_wrong_thing_are_warned_of(client: TestClient) -> None:
    dry_run = start(client, [{"name": "format"}])

    work()

    codes = {each["code"] for each in client.get(f"/rewards/dry-runs/{dry_run}").json()["result"]["warnings"]}
    assert "all_equal" in codes


def test_the_recorded_responses_of_a_job_are_scored_too(client: TestClient, installation: Any) -> None:
    job = installation.add_job()
    with installation.write() as session:
        session.add(
            RolloutSample(
                job_id=job.id, attempt=1, step=3, split="train", group="g", prompt="1 + 1",
                response="#### 2", ground_truth="2", response_tokens=3,
            )
        )  # fmt: skip
    dry_run = start(client, [{"name": "gsm8k"}], job=job.id)

    work()

    found = client.get(f"/rewards/dry-runs/{dry_run}").json()
    rollouts = next(each for each in found["result"]["probes"] if each["probe"] == "rollouts")
    assert (found["step"], rollouts["count"], rollouts["mean"]) == (3, 1, 1.0)


def test_a_running_dry_run_can_be_cancelled(client: TestClient) -> None:
    dry_run = start(client, [python(upload(client, HANGING_FILE), timeout_s=100)])
    worker = Thread(target=work)
    worker.start()
    deadline = time.monotonic() + 30
    while client.get(f"/rewards/dry-runs/{dry_run}").json()["state"] != "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)

    cancelled = client.post(f"/rewards/dry-runs/{dry_run}/cancel")
    worker.join(20)

    assert not worker.is_alive()
    assert cancelled.json()["state"] == "cancelled"
    assert client.get(f"/rewards/dry-runs/{dry_run}").json()["state"] == "cancelled"
    assert client.post(f"/rewards/dry-runs/{dry_run}/cancel").json()["error"] == "dry_run_finished"


def test_a_dry_run_that_takes_too_long_is_ended(install: Callable[..., Any], request: Any) -> None:
    request.getfixturevalue("monkeypatch").setenv("TRELLIS_DRY_RUN_TIMEOUT_S", "4")
    client: TestClient = request.getfixturevalue("client")
    dry_run = start(client, [python(upload(client, HANGING_FILE), timeout_s=100)])

    work()

    found = client.get(f"/rewards/dry-runs/{dry_run}").json()
    assert (found["state"], found["cause"]) == ("failed", "time_limit")


def test_a_bad_row_is_named(client: TestClient, installation: Any) -> None:
    # The first row is looked at when the dry run is asked for.
    publish(installation, [{"prompt": "1 + 1", "answer": "2"}, {"prompt": "2 + 2", "answer": ""}])
    dry_run = start(client, [{"name": "exact"}])

    work()

    found = client.get(f"/rewards/dry-runs/{dry_run}").json()
    assert (found["state"], found["cause"]) == ("failed", "bad_request")
    assert "Row 2" in found["reason"]


def test_rows_are_those_of_the_version_and_split_that_were_asked_for(
    client: TestClient, installation: Any
) -> None:
    before = client.get(f"/datasets/{DATASET}").json()["head"]
    with installation.database.write() as session:
        rows = {
            "train": [{"prompt": "1 + 1", "answer": ""}],
            "test": [{"prompt": "2 + 2", "answer": "4"}] * 3,
        }
        add_version(session, installation.settings, DATASET, rows)
    old = start(client, [{"name": "exact"}], dataset_version=before[:8])
    new = start(client, [{"name": "exact"}], dataset_split="test")
    # What comes later does not concern them.
    publish(installation, [{"prompt": "3 + 3", "answer": "6"}])

    work()

    first, second = (client.get(f"/rewards/dry-runs/{each}").json() for each in (old, new))
    assert (first["state"], first["dataset_version"], first["dataset_split"]) == (
        "succeeded",
        before,
        "train",
    )
    assert (second["state"], second["dataset_split"]) == ("succeeded", "test")
    assert second["dataset_version"] != before
    assert {each["count"] for each in second["result"]["probes"] if each["probe"] == "gold"} == {3}
    unknown = {"rewards": [{"name": "exact"}], "dataset": DATASET, "dataset_split": "nothing"}
    refused = client.post("/rewards/dry-runs", json=unknown)
    assert (refused.status_code, refused.json()["error"]) == (422, "unknown_version")


def test_a_file_in_use_is_not_deleted_and_nothing_is_left_behind(
    client: TestClient, installation: Any
) -> None:
    file_id = upload(client, GOOD_FILE)
    start(client, [python(file_id)])

    refused = client.delete(f"/rewards/files/{file_id}")
    work()
    deleted = client.delete(f"/rewards/files/{file_id}")

    assert (refused.status_code, refused.json()["error"]) == (409, "reward_file_in_use")
    assert deleted.status_code == 204
    assert list((installation.settings.data_root / "run" / "dry-runs").iterdir()) == []


def test_a_dry_run_of_a_dead_worker_is_settled(client: TestClient, installation: Any) -> None:
    from datetime import timedelta

    from trellis_api.core.columns import utc_now
    from trellis_api.rewards.models import DryRun

    dry_run = start(client, [{"name": "exact"}])
    with installation.write() as session:
        row = session.get(DryRun, dry_run)
        row.state, row.touched_at = "running", utc_now() - timedelta(minutes=5)
        session.add(row)

    work()

    found = client.get(f"/rewards/dry-runs/{dry_run}").json()
    assert (found["state"], found["cause"]) == ("failed", "worker_lost")


def test_a_mistake_of_the_worker_is_told_as_such_and_without_secrets(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from trellis_workers.rewards import dry_runs

    def fail(*_arguments: Any) -> None:
        raise RuntimeError("no folder for hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345678")

    monkeypatch.setattr(dry_runs, "copy_resources", fail)
    first, second = (start(client, [{"name": "exact"}]) for _ in range(2))

    work()

    for dry_run in (first, second):
        found = client.get(f"/rewards/dry-runs/{dry_run}").json()
        assert (found["state"], found["cause"]) == ("failed", "worker_failed")
        assert "RuntimeError: no folder for [secret]" in found["reason"]
        assert any(dry_run in record.getMessage() and record.exc_info for record in caplog.records)


def test_a_dry_run_that_another_worker_has_just_taken_goes_on(client: TestClient, installation: Any) -> None:
    from trellis_api.rewards import repository
    from trellis_workers.rewards import dry_runs

    dry_run = start(client, [{"name": "exact"}])
    with installation.write() as session:
        assert repository.claim_dry_run(session, dry_run_id=dry_run)

    dry_runs.run(installation.settings, installation.database, dry_run_id=dry_run)

    assert client.get(f"/rewards/dry-runs/{dry_run}").json()["state"] == "running"


def test_launch_hands_over_what_rewards_need(
    client: TestClient, installation: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from trellis_api.core.settings import Settings
    from trellis_workers.jobs.reward_files import stage_rewards

    endpoint = {"base_url": "http://judge.test/v1", "model": "m", "key_variable": "JUDGE_KEY"}
    monkeypatch.setenv("TRELLIS_JUDGES", json.dumps({"strict": endpoint}))
    monkeypatch.setenv("JUDGE_KEY", "a-secret-for-the-judge")
    file_id = upload(client, GOOD_FILE)
    terms = [python(file_id), {"name": "judge", "options": {"endpoint": "strict"}}]
    job = installation.add_job(params={"rewards": terms})

    shown = stage_rewards(Settings(), job, tmp_path)

    copied = tmp_path / "rewards" / f"{file_id}.py"
    assert copied.read_text() == GOOD_FILE
    assert shown is not None
    assert shown["files"][file_id]["path"] == str(copied)
    keys = tmp_path / "reward-keys"
    assert (json.loads(keys.read_text()), keys.stat().st_mode & 0o777) == (
        {"strict": "a-secret-for-the-judge"},
        0o600,
    )
    assert "a-secret" not in (tmp_path / "rewards.json").read_text()


def test_unusual_columns_are_read_as_a_job_reads_them(client: TestClient, installation: Any) -> None:
    rows = "\n".join(json.dumps({"frage": f"{n} + 1", "ergebnis": str(n + 1)}) for n in range(20))
    dataset = client.post("/datasets", files={"file": ("summen.jsonl", rows)}).json()
    finish_data_tasks(installation.settings, installation.database)
    request = {"rewards": [{"name": "exact"}], "dataset": dataset["id"]}

    refused = client.post("/rewards/dry-runs", json=request)
    columns = {"prompt": "frage", "answer": "ergebnis"}
    dry_run = start(client, [{"name": "exact"}], dataset=dataset["id"], columns=columns)
    work()

    assert (refused.status_code, refused.json()["error"]) == (422, "unsuitable_dataset")
    assert refused.json()["details"][0]["missing"]
    found = client.get(f"/rewards/dry-runs/{dry_run}").json()
    assert found["state"] == "succeeded", found
    assert {each["probe"]: each["mean"] for each in found["result"]["probes"]}["answer"] == 1.0
