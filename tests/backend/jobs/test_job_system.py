"""What the machines measured while a job ran, with the times of its attempts and steps."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.jobs.timing import store
from trellis_api.monitoring.models import MachineSample

NOW = datetime.now(UTC).replace(microsecond=0)


def metrics(step: int, at: datetime) -> dict[str, Any]:
    return {"kind": "metrics", "time": at.isoformat(), "step": step, "values": {"loss": 1.0}}


def send(client: TestClient, launched: Any, *events: dict[str, Any], sequence: int = 1) -> None:
    batch = {"attempt": launched.attempt, "sequence": sequence, "events": list(events)}
    url = f"/api/v1/ingest/jobs/{launched.job_id}/batches"
    assert client.post(url, json=batch, headers=launched.headers).status_code == 200


def read(client: TestClient, job_id: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/jobs/{job_id}/system", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def sample(database: Database) -> Callable[..., None]:
    def keep(at: datetime, node: str = "alpha", **figures: float) -> None:
        grid = datetime.fromtimestamp(at.timestamp() // 10 * 10, UTC)
        with database.write() as session:
            row = MachineSample(node=node, at=grid, figures=figures, counters={}, processes=[])
            session.add(row)

    return keep


def test_a_run_has_the_samples_of_its_time_and_the_times_of_its_steps(
    client: TestClient, make_launched: Callable[..., Any], sample: Callable[..., None]
) -> None:
    launched = make_launched()
    send(client, launched, metrics(1, NOW), metrics(2, NOW + timedelta(seconds=4)))
    sample(datetime.now(UTC), cpu_percent=50.0)
    sample(NOW - timedelta(hours=3), cpu_percent=1.0)

    found = read(client, launched.job_id)

    (node,) = found["nodes"]
    assert (node["node"], node["figures"]) == ("alpha", {"cpu_percent": [50.0]})
    assert found["step_times"]["steps"] == [1, 2]
    assert [datetime.fromisoformat(at) for at in found["step_times"]["at"]] == [
        NOW, NOW + timedelta(seconds=4)
    ]  # fmt: skip
    (attempt,) = found["attempts"]
    assert (attempt["number"], attempt["first_step"], attempt["finished_at"]) == (1, 1, None)
    assert datetime.fromisoformat(found["since"]) < datetime.fromisoformat(attempt["started_at"])


def test_one_node_can_be_read_alone(
    client: TestClient, make_launched: Callable[..., Any], sample: Callable[..., None]
) -> None:
    launched = make_launched()
    send(client, launched, metrics(1, NOW))
    sample(datetime.now(UTC), cpu_percent=50.0)
    sample(datetime.now(UTC), node="beta", cpu_percent=60.0)

    assert [node["node"] for node in read(client, launched.job_id)["nodes"]] == ["alpha", "beta"]
    assert [node["node"] for node in read(client, launched.job_id, node="beta")["nodes"]] == ["beta"]


def test_a_job_that_has_not_begun_has_no_range(client: TestClient, make_job: Callable[..., str]) -> None:
    found = read(client, make_job())

    assert (found["since"], found["nodes"], found["attempts"]) == (None, [], [])


def test_a_step_has_the_time_of_its_first_report_and_after_a_resume_the_new_one(
    database: Database, client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    send(client, launched, metrics(1, NOW), metrics(1, NOW + timedelta(seconds=9)))
    send(client, launched, metrics(1, NOW + timedelta(seconds=20)), sequence=2)

    before = read(client, launched.job_id)["step_times"]
    with database.write() as session:
        store.write_times(session, job_id=launched.job_id, attempt=2, times=[(1, NOW.timestamp() + 60)])
    after = read(client, launched.job_id)["step_times"]

    assert [datetime.fromisoformat(at) for at in before["at"]] == [NOW]
    assert [datetime.fromisoformat(at) for at in after["at"]] == [NOW + timedelta(seconds=60)]
    assert after["attempts"] == [2]


def test_steps_of_a_long_run_are_thinned_out_and_those_behind_a_checkpoint_forgotten(
    database: Database, client: TestClient, make_launched: Callable[..., Any]
) -> None:
    launched = make_launched()
    times = [(step, NOW.timestamp() + step) for step in range(1, 1001)]
    with database.write() as session:
        store.write_times(session, job_id=launched.job_id, attempt=1, times=times)

    thinned = read(client, launched.job_id, max_points=100)["step_times"]["steps"]
    with database.write() as session:
        store.truncate(session, job_id=launched.job_id, last_step=5)

    assert thinned[:3] == [1, 11, 21]
    assert thinned[-1] == 1000
    assert len(thinned) <= 101
    assert read(client, launched.job_id)["step_times"]["steps"] == [1, 2, 3, 4, 5]
