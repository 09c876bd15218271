"""Replays over the API and with the command: what is shown, queued and refused, and the exit codes."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset, DatasetVersion
from trellis_api.jobs.models import Attempt, Job
from trellis_api.models.models import Model
from trellis_cli.client import ApiClient
from trellis_cli.main import main
from trellis_contracts.endpoints import JudgeEndpoint

Run = Callable[..., int]


@pytest.fixture
def job(client: TestClient, model: Model, dataset: Dataset) -> str:
    body = {"name": "sums", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}
    return str(client.post("/api/v1/jobs", json=body).json()["id"])


@pytest.fixture
def manifest(client: TestClient, database: Database, settings: Settings, job: str) -> dict[str, Any]:
    """What the job's run would have written, and did."""
    with database.write() as session:
        written = describe(session, settings, job, client)
        session.add(Attempt(job_id=job, number=1, manifest=written))
    return written


def describe(session: Session, settings: Settings, job_id: str, client: TestClient) -> dict[str, Any]:
    row = session.get(Job, job_id)
    assert row is not None
    version = session.exec(select(DatasetVersion).where(DatasetVersion.dataset_id == row.dataset_id)).one()
    request = {"name": row.name, "recipe": row.recipe, "preset": row.preset, "model": row.model_id}
    composed = client.post("/api/v1/jobs/preview", json={**request, "dataset": row.dataset_id}).json()
    rows = {"dataset_id": row.dataset_id, "version": version.id, "split": "train", "sha256": version.tree}
    read = {"format": composed["data"]["read_as"], "columns": composed["data"]["columns"]}
    return {
        "job_id": job_id,
        "recipe": row.recipe,
        "engine": composed["engine"],
        "params": composed["params"],
        "config": composed["config"],
        "request": {"name": row.name, "preset": row.preset, "overrides": {}},
        "seeds": {"run": 5},
        "model": {"model_id": row.model_id, "path": "/x", "sha256": None},
        "train_data": {**rows, **read, "row_count": version.row_count},
        "validation_data": None,
        "resume_from": None,
        "packages": {},
        "git": None,
        "hardware": {"platform": settings.resolved_platform, "gpus_asked": 1, "gpus": []},
    }


@pytest.fixture
def trellis(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command against the API; its exit code."""

    def forward(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        headers = {**request.headers, "host": "testserver"}
        answer = client.request(request.method, path, content=request.read(), headers=headers)
        return httpx.Response(answer.status_code, content=answer.content)

    def connect() -> ApiClient:
        token = client.headers["Authorization"].removeprefix("Bearer ")
        found = ApiClient("http://testserver", token)
        found._http = httpx.Client(
            base_url=found.url,
            headers={"Authorization": found.token_header},
            transport=httpx.MockTransport(forward),
        )
        return found

    monkeypatch.setattr("trellis_cli.replay.connect", connect)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["trellis", "replay", *arguments])
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    return run


def count_jobs(client: TestClient) -> int:
    return len(client.get("/api/v1/jobs").json()["items"])


def test_a_plan_launches_nothing_and_a_replay_queues_the_run(
    client: TestClient, job: str, manifest: dict[str, Any]
) -> None:
    plan = client.post("/api/v1/jobs/replay/preview", json={"manifest": manifest})
    assert plan.status_code == 200, plan.text
    assert plan.json()["problems"] == []
    # The hash of the weights is not known to the manifest: that is all.
    assert [each["what"] for each in plan.json()["differences"]] == ["model"]
    assert count_jobs(client) == 1

    made = client.post("/api/v1/jobs/replay", json={"manifest": manifest, "name": "again"})

    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["seed"], made.json()["cloned_from"]) == ("again", 5, job)


def test_packages_are_those_of_the_newest_run_and_one_that_is_gone_is_a_difference(
    client: TestClient, manifest: dict[str, Any], database: Database, make_job: Callable[..., str]
) -> None:
    newest = {**manifest, "packages": {"torch": "2.0"}}
    with database.write() as session:
        session.add(Attempt(job_id=make_job(), number=1, manifest=newest))
    asked = {**manifest, "packages": {"torch": "1.0", "flash-attn": "2.7", "pydantic": "2"}}

    found = client.post("/api/v1/jobs/replay/preview", json={"manifest": asked}).json()["differences"]

    packages = [(each["name"], each["was"], each["now"]) for each in found if each["what"] == "package"]
    assert packages == [("flash-attn", "2.7", None), ("pydantic", "2", None), ("torch", "1.0", "2.0")]


def test_a_judge_at_another_address_is_a_difference(
    client: TestClient, manifest: dict[str, Any], settings: Settings
) -> None:
    settings.judges["gpt"] = JudgeEndpoint(base_url="http://10.0.0.2/v1", model="new")
    rewards = [{"name": "judge", "weight": 1.0, "options": {"endpoint": "gpt"}}]
    was = {"files": {}, "models": {}, "judges": {"gpt": {"base_url": "http://10.0.0.1/v1", "model": "old"}}}
    asked = {**manifest, "params": {**manifest["params"], "rewards": rewards}, "rewards": was}

    found = client.post("/api/v1/jobs/replay/preview", json={"manifest": asked}).json()

    (row,) = [each for each in found["differences"] if each["what"] == "reward"]
    assert row["name"] == "judges.gpt"
    assert "old" in row["was"]
    assert "new" in row["now"]


def test_asterisks_in_a_text_are_no_mask(client: TestClient, manifest: dict[str, Any]) -> None:
    asked = {**manifest, "params": {**manifest["params"], "system_prompt": "Be ***bold***."}}

    found = client.post("/api/v1/jobs/replay/preview", json={"manifest": asked}).json()

    assert "value_masked" not in [each["code"] for each in found["problems"]]
    masked = {**manifest, "params": {**manifest["params"], "system_prompt": "***"}}
    refused = client.post("/api/v1/jobs/replay/preview", json={"manifest": masked}).json()
    assert [each["code"] for each in refused["problems"]] == ["value_masked"]


def test_what_is_missing_is_refused_with_a_code(client: TestClient, manifest: dict[str, Any]) -> None:
    manifest["train_data"]["sha256"] = "f" * 64

    answer = client.post("/api/v1/jobs/replay", json={"manifest": manifest})

    assert (answer.status_code, answer.json()["error"]) == (422, "cannot_replay")
    assert [each["code"] for each in answer.json()["details"]] == ["rows_missing"]


@pytest.mark.parametrize(
    "change",
    [
        {"train_data": None},
        {"model": {"model_id": "mdl_x", "sha256": "short"}},
        {"seeds": {"run": -1}},
        {"hardware": {"gpus_asked": 0}},
        {"params": {"token": "hf_abcdefghijklmnopqrstuvwxyz0123456789"}},
        {"params": {"a\u0000b": 1}},
        {"config": json.loads('{"a":' * 50 + "1" + "}" * 50)},
    ],
)
def test_what_is_no_manifest_is_422(
    client: TestClient, manifest: dict[str, Any], change: dict[str, Any]
) -> None:
    answer = client.post("/api/v1/jobs/replay/preview", json={"manifest": {**manifest, **change}})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request"), answer.text


def test_the_command_takes_a_job_or_a_file(
    client: TestClient,
    trellis: Run,
    job: str,
    manifest: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert trellis(job, "--dry-run", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["job"], shown["plan"]["request"]["seed"]) == (None, 5)
    assert count_jobs(client) == 1
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps({"attempt": 1, "manifest": manifest}))

    assert trellis(str(file), "--name", "from a file") == 0

    said = capsys.readouterr()
    assert "grpo of mdl_" in said.err
    assert "sha256" in said.out
    assert client.get("/api/v1/jobs").json()["items"][0]["name"] == "from a file"


@pytest.mark.parametrize(
    ("arguments", "change", "code"),
    [
        (["--dry-run"], {"recipe": "lost"}, 4),
        ([], {"recipe": "lost"}, 4),
        (["--strict"], {}, 4),
        (["--attempt", "1"], {}, 2),
    ],
)
def test_the_exit_code_says_whether_it_can_be_repeated(
    client: TestClient,
    trellis: Run,
    manifest: dict[str, Any],
    tmp_path: Path,
    arguments: list[str],
    change: dict[str, Any],
    code: int,
) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps({**manifest, **change}))

    assert trellis(str(file), *arguments) == code

    assert count_jobs(client) == 1


def test_what_is_no_file_of_a_manifest_is_a_usage_error(trellis: Run, tmp_path: Path) -> None:
    texts = {"broken.json": "{", "list.json": "[]"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        assert trellis(str(tmp_path / name)) == 2
    assert trellis(str(tmp_path / "lost.json")) == 2
