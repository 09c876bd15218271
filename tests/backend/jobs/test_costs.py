"""What jobs, launches and sweeps cost, where the owner set a price; nothing where there is none."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.models import Attempt, Job
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

#: One euro a thousand slot-seconds.
PRICE = 3.6


@pytest.fixture
def price() -> float | None:
    """Of a slot-hour; a test may set another."""
    return PRICE


@pytest.fixture
def settings(settings: Settings, price: float | None) -> Settings:
    """The platform with a price, and with one that is not of its kind of slots."""
    return settings.model_copy(update={"cpu_hour_price": price, "gpu_hour_price": 99.0, "currency": "EUR"})


def add_job(database: Database, **changes: Any) -> str:
    now = utc_now()
    fields: dict[str, Any] = {
        "id": new_id("job"), "name": "run", "state": JobState.SUCCEEDED, "recipe": "sft", "gpus": 2,
        "model_id": new_id("mdl"), "started_at": now - timedelta(seconds=500), "finished_at": now,
    }  # fmt: skip
    with database.write() as session:
        job = Job(**{**fields, **changes})
        session.add(job)
        return job.id


def cost(client: TestClient, job_id: str) -> Any:
    return client.get(f"/api/v1/jobs/{job_id}").json()["cost"]


def test_a_job_costs_its_run_time_times_its_slots(client: TestClient, database: Database) -> None:
    assert cost(client, add_job(database)) == {"amount": 1.0, "currency": "EUR"}
    assert client.get("/api/v1/jobs").json()["items"][0]["cost"] == {"amount": 1.0, "currency": "EUR"}


def test_earlier_attempts_cost_too(client: TestClient, database: Database) -> None:
    job_id = add_job(database, attempt=2)
    now = utc_now()
    with database.write() as session:
        for number, seconds in ((1, 1000), (2, 500)):
            begun = now - timedelta(seconds=seconds)
            session.add(Attempt(job_id=job_id, number=number, started_at=begun, finished_at=now))

    assert cost(client, job_id)["amount"] == 3.0


def test_what_holds_no_slot_or_never_began_has_no_cost(client: TestClient, database: Database) -> None:
    assert cost(client, add_job(database, gpus=0, kind="export")) is None
    assert cost(client, add_job(database, state=JobState.QUEUED, started_at=None, finished_at=None)) is None


@pytest.mark.parametrize("price", [None])
def test_without_a_price_nothing_has_a_cost(
    client: TestClient, database: Database, body: dict[str, Any]
) -> None:
    assert cost(client, add_job(database)) is None
    assert client.get("/api/v1/monitoring/dashboard").json()["slots"]["price"] is None
    assert preview(client, database, body)["cost"] is None
    swept = sweep_preview(client, body, cost=1.0)
    assert [(each["code"], each["field"]) for each in swept["errors"]] == [("no_price", "budget.cost")]


def test_the_platform_says_its_price(client: TestClient) -> None:
    assert client.get("/api/v1/monitoring/dashboard").json()["slots"]["price"] == {
        "per_hour": PRICE,
        "currency": "EUR",
    }


def test_jobs_are_sorted_by_cost_and_those_without_one_come_last(
    client: TestClient, database: Database
) -> None:
    now = utc_now()
    for name, gpus, seconds in (("dear", 4, 10), ("cheap", 1, 20), ("none", 0, 90)):
        job_id = add_job(database, name=name, gpus=gpus, attempt=1)
        with database.write() as session:
            end = now + timedelta(seconds=seconds)
            session.add(Attempt(job_id=job_id, number=1, started_at=now, finished_at=end))

    def names(order: str) -> list[str]:
        items = client.get("/api/v1/jobs", params={"sort": "cost", "order": order}).json()["items"]
        return [job["name"] for job in items]

    assert names("asc") == ["cheap", "dear", "none"]
    assert names("desc") == ["dear", "cheap", "none"]


@pytest.fixture
def body(model: Model, dataset: Dataset) -> dict[str, Any]:
    return {
        "name": "next", "recipe": "grpo", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id,
        "params": {"total_steps": 100, "batch_size": 8, "group_size": 4}, "resources": {"gpus": 2},
    }  # fmt: skip


def preview(client: TestClient, database: Database, body: dict[str, Any]) -> Any:
    """The time that is told after a run that was alike: 20 s of start and a second a step."""
    begun = utc_now() - timedelta(hours=1)
    add_job(
        database, recipe="grpo", preset=body["preset"], model_id=body["model"], dataset_id=body["dataset"],
        params=body["params"],
        launched_at=begun, first_step=1, first_step_at=begun + timedelta(seconds=20), step=11,
        last_step_at=begun + timedelta(seconds=30), total_steps=11,
    )  # fmt: skip
    return client.post("/api/v1/jobs/preview", json=body).json()["forecast"]["time"]


def test_a_launch_tells_its_cost_before(client: TestClient, database: Database, body: dict[str, Any]) -> None:
    found = preview(client, database, body)

    # 120 s on two slots.
    assert found["seconds"] == 120.0
    assert found["cost"] == {"amount": 0.24, "currency": "EUR"}


def sweep_preview(client: TestClient, body: dict[str, Any], **budget: Any) -> Any:
    request = {"name": "sweep", "job": body, "seeds": [1, 2], "budget": budget}
    response = client.post("/api/v1/sweeps/preview", json=request)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_budget_in_money_is_one_of_slot_hours(
    client: TestClient, body: dict[str, Any], make_job: Callable[..., str]
) -> None:
    request = {"name": "sweep", "job": body, "seeds": [1, 2]}

    for budget, hours in (({"cost": 7.2}, 2.0), ({"cost": 7.2, "slot_hours": 0.5}, 0.5)):
        made = client.post("/api/v1/sweeps", json={**request, "budget": budget})
        assert made.status_code == 201, made.text
        kept = client.get(f"/api/v1/sweeps/{made.json()['id']}").json()["request"]["budget"]
        assert (kept["cost"], kept["slot_hours"]) == (7.2, hours)


@pytest.mark.parametrize("wrong", [{"cpu_hour_price": 0}, {"gpu_hour_price": -1}, {"currency": "euro"}])
def test_a_wrong_price_stops_the_start(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)
