"""What a preview tells of time, start and disk, and what that is based on."""

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.forecast import service as forecast
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

from tests.backend.conftest import build_model


@pytest.fixture
def request_body(model: Model, dataset: Dataset) -> dict[str, Any]:
    return {
        "name": "next", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id,
        "params": {"total_steps": 100, "batch_size": 8, "group_size": 4},
    }  # fmt: skip


def add_run(
    database: Database, body: dict[str, Any], *, step_s: float, steps: int = 11, **changes: Any
) -> str:
    """A run that was measured: its first step came 20 s after its launch."""
    begun = utc_now() - timedelta(hours=1)
    fields: dict[str, Any] = {
        "id": new_id("job"), "name": "before", "state": JobState.SUCCEEDED, "recipe": body["recipe"],
        "preset": body["preset"],
        "model_id": body["model"], "dataset_id": body["dataset"], "params": body["params"], "gpus": 1,
        "launched_at": begun, "first_step": 1, "first_step_at": begun + timedelta(seconds=20), "step": steps,
        "last_step_at": begun + timedelta(seconds=20 + step_s * (steps - 1)), "total_steps": steps,
    }  # fmt: skip
    with database.write() as session:
        session.add(Job(**{**fields, **changes}))
    return str(changes.get("id", fields["id"]))


def read(client: TestClient, body: dict[str, Any]) -> Any:
    answer = client.post("/api/v1/jobs/preview", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["forecast"]


def test_without_a_measured_run_no_time_is_told(client: TestClient, request_body: dict[str, Any]) -> None:
    found = read(client, request_body)

    assert (found["time"], found["steps"]) == (None, 100)
    assert found["start"] == {"seconds": 0.0, "jobs_ahead": 0, "unknown": None}


def test_time_is_that_of_runs_that_were_alike(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    runs = [add_run(database, request_body, step_s=seconds) for seconds in (1.0, 2.0, 3.0)]
    add_run(database, request_body, step_s=50.0, recipe="sft")
    add_run(database, request_body, step_s=50.0, gpus=2)
    add_run(database, request_body, step_s=50.0, steps=2)

    time = read(client, request_body)["time"]

    assert (time["seconds"], time["low_s"], time["high_s"]) == (220.0, 120.0, 320.0)
    assert sorted(time["runs"]) == sorted(runs)
    assert time["is_same_data"] is True
    assert time["slot_hours"] == pytest.approx(220 / 3600, abs=1e-3)


def resize(database: Database, model_id: str, parameters: int | None) -> None:
    with database.write() as session:
        session.get_one(Model, model_id).parameter_count = parameters


def test_without_runs_alike_those_of_the_nearest_model_are_scaled_by_its_size(
    client: TestClient, database: Database, settings: Settings, request_body: dict[str, Any]
) -> None:
    sizes = {"md_aaaaaaaaaaaa": 50_000_000, "md_bbbbbbbbbbbb": 400_000_000, "md_cccccccccccc": 9 * 10**9}
    with database.write() as session:
        for model_id, size in sizes.items():
            session.add(build_model(settings, id=model_id, name=model_id, parameter_count=size))
    runs = [add_run(database, request_body, step_s=1.0, model_id=model_id) for model_id in sizes]
    resize(database, request_body["model"], 100_000_000)

    time = read(client, request_body)["time"]

    assert (time["basis"], time["runs"]) == ("scaled_runs", [runs[0]])
    assert time["scaled_from_parameters"] == 50_000_000
    # Twice the size: between as long, for what does not grow with it, and twice as long.
    assert (time["seconds"], time["low_s"], time["high_s"]) == (220.0, 120.0, 220.0)

    # None is near enough.
    resize(database, request_body["model"], 2_000_000)
    assert read(client, request_body)["time"] is None


def test_without_any_runs_the_operations_of_a_step_are_counted(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    resize(database, request_body["model"], 134_515_008)
    lengths = {"max_prompt_length": 64, "max_response_length": 64, "gradient_checkpointing": False}
    request_body["params"] = {**request_body["params"], **lengths, "use_kl_loss": False}

    time = read(client, request_body)["time"]
    longer = {**request_body["params"], "max_response_length": 128}
    slower = read(client, {**request_body, "params": longer})["time"]

    assert (time["basis"], time["runs"]) == ("arithmetic", [])
    # Sampling: 2 operations for each parameter, token of a response, and prompt of a group. Then 2 for the
    # probabilities before the update, and 6 for the update.
    tokens = 2 * (32 * 64 + 8 * 64) + (2 + 6) * 32 * 128
    assert time["step_flops"] == 134_515_008 * tokens
    least = time["step_flops"] / time["machine_flops"]
    assert time["low_s"] == pytest.approx(100 * least, rel=0.01)
    assert time["low_s"] < time["seconds"] < time["high_s"]
    assert slower["step_flops"] > time["step_flops"]


def test_arithmetic_says_nothing_of_a_tiny_model(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    resize(database, request_body["model"], 821_760)

    assert read(client, request_body)["time"] is None


def test_time_grows_with_the_rows_of_a_step(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    add_run(database, request_body, step_s=1.0)
    request_body["params"] = {**request_body["params"], "batch_size": 16}

    assert read(client, request_body)["time"]["seconds"] == 220.0


def test_time_grows_with_the_lengths_of_prompt_and_response(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    short = {**request_body["params"], "max_prompt_length": 64, "max_response_length": 64}
    add_run(database, request_body, step_s=1.0, params=short)
    request_body["params"] = {**short, "max_response_length": 192}

    time = read(client, request_body)["time"]

    assert time["seconds"] == 220.0
    assert time["rows_per_s"] == 16.0  # 8 prompts with 4 responses each in 2 s


def test_rows_that_nobody_typed_are_those_of_the_preset(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    """A run that was given nothing had the preset's rows in a step, as a launch that is given nothing has."""
    add_run(database, request_body, step_s=1.0, params={"total_steps": 11}, preset="cpu-tiny")
    typed = client.post("/api/v1/jobs/preview", json={**request_body, "params": {"total_steps": 100}}).json()
    rows = {name: typed["params"][name] for name in ("batch_size", "group_size")}
    assert typed["forecast"]["time"]["seconds"] == 120.0

    request_body["params"] = {"total_steps": 100, **rows, "batch_size": 2 * rows["batch_size"]}
    assert read(client, request_body)["time"]["seconds"] == 220.0


def test_a_queued_job_of_a_recipe_that_is_gone_has_no_length_and_breaks_nothing(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    add_run(database, request_body, step_s=1.0, state=JobState.QUEUED, name="old", recipe="gone", gpus=4)

    assert read(client, request_body)["start"]["unknown"] == "old"


def test_a_resumed_job_has_only_its_last_steps_left(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    add_run(database, request_body, step_s=1.0)
    add_run(database, request_body, step_s=1.0, state=JobState.QUEUED, step=80, total_steps=100, gpus=1,
            name="ahead", params={"total_steps": 100, "batch_size": 8, "group_size": 4},
            first_step_at=None, last_step_at=None)  # fmt: skip
    add_run(database, request_body, step_s=1.0, state=JobState.RUNNING, gpus=3, steps=11, total_steps=1000,
            recipe="sft", name="long")  # fmt: skip
    request_body["resources"] = {"gpus": 1}

    # One slot is free: the job that is ahead takes it for the start and its twenty steps.
    assert read(client, request_body)["start"]["seconds"] == 40.0


def test_runs_that_were_alike_are_looked_up_once_for_all_queued_jobs_of_a_kind(
    client: TestClient, database: Database, request_body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(database, request_body, step_s=1.0)
    for number in range(5):
        add_run(database, request_body, step_s=1.0, state=JobState.QUEUED, name=f"ahead {number}", step=0,
                total_steps=None, first_step_at=None, last_step_at=None)  # fmt: skip
    asked: list[str] = []
    whole = forecast.list_alike

    def count(session: Any, *, job: Job, model: Model) -> Any:
        asked.append(job.name)
        return whole(session, job=job, model=model)

    monkeypatch.setattr(forecast, "list_alike", count)

    assert read(client, request_body)["start"]["jobs_ahead"] == 5
    assert len(asked) == 2  # of the launch itself, and of those ahead


def test_runs_on_other_data_speak_only_where_there_are_no_others(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    add_run(database, request_body, step_s=9.0, dataset_id="ds_aaaaaaaaaaaa")
    assert read(client, request_body)["time"]["is_same_data"] is False

    add_run(database, request_body, step_s=1.0)
    assert read(client, request_body)["time"]["seconds"] == 120.0


def test_a_full_platform_starts_the_next_when_the_first_ends(
    client: TestClient, database: Database, request_body: dict[str, Any]
) -> None:
    add_run(database, request_body, step_s=1.0, state=JobState.RUNNING, gpus=4, steps=11, total_steps=31)
    found = read(client, request_body)["start"]
    assert (found["seconds"], found["jobs_ahead"]) == (20.0, 0)

    add_run(
        database, request_body, step_s=1.0, state=JobState.QUEUED, name="unmeasured", recipe="sft", gpus=4
    )
    found = read(client, request_body)["start"]
    assert (found["seconds"], found["jobs_ahead"], found["unknown"]) == (None, 1, "unmeasured")


def test_a_request_that_cannot_run_has_no_forecast(client: TestClient, request_body: dict[str, Any]) -> None:
    request_body["params"] = {"learning_rate": -1}

    assert read(client, request_body) is None
