"""The queue: its order with expected starts, and jobs that are moved within it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_api.jobs.queue.admission import claim_next
from trellis_contracts.states import JobState


@pytest.fixture
def queued(make_job: Callable[..., str]) -> dict[str, str]:
    """An urgent job, three of the same priority and a late one, each a minute younger, and an evaluation."""
    now = utc_now()
    priorities = {"urgent": 5, "a": 0, "b": 0, "c": 0, "late": -5}
    ids = {
        name: make_job(name=name, priority=priority, queued_at=now + timedelta(minutes=place))
        for place, (name, priority) in enumerate(priorities.items())
    }
    ids["measure"] = make_job(name="measure", kind="evaluate", gpus=0, queued_at=now - timedelta(hours=1))
    return ids


def order(client: TestClient) -> list[str]:
    return [item["job"]["name"] for item in client.get("/api/v1/jobs/queue").json()["items"]]


def move(client: TestClient, job_id: str, before: str | None) -> Any:
    return client.post(f"/api/v1/jobs/{job_id}/move", json={"before": before})


def priority(client: TestClient, job_id: str) -> int:
    return int(client.get(f"/api/v1/jobs/{job_id}").json()["priority"])


def test_the_queue_is_listed_in_launch_order(client: TestClient, queued: dict[str, str]) -> None:
    assert order(client) == ["urgent", "a", "b", "c", "late", "measure"]


@pytest.mark.parametrize(
    ("name", "before", "expected", "new_priority"),
    [
        ("c", "a", ["urgent", "c", "a", "b", "late"], 0),
        ("c", "b", ["urgent", "a", "c", "b", "late"], 0),
        ("a", "late", ["urgent", "b", "c", "a", "late"], 0),
        ("b", "urgent", ["b", "urgent", "a", "c", "late"], 5),
        ("a", None, ["urgent", "b", "c", "late", "a"], -5),
        ("urgent", "b", ["a", "urgent", "b", "c", "late"], 0),
        ("late", "a", ["urgent", "late", "a", "b", "c"], 0),
    ],
)
def test_a_job_is_moved_before_another_and_keeps_its_priority_where_it_can(
    client: TestClient,
    queued: dict[str, str],
    name: str,
    before: str | None,
    expected: list[str],
    new_priority: int,
) -> None:
    response = move(client, queued[name], queued[before] if before else None)

    assert response.status_code == 200, response.text
    assert [item["job"]["name"] for item in response.json()["items"]] == [*expected, "measure"]
    assert priority(client, queued[name]) == new_priority
    assert order(client) == [*expected, "measure"]


def test_many_moves_between_the_same_neighbours_keep_the_order(
    client: TestClient, queued: dict[str, str]
) -> None:
    for turn in range(70):
        mover = "bc"[turn % 2]
        assert move(client, queued[mover], queued["bc"[(turn + 1) % 2]]).status_code == 200
        assert order(client)[:4] == ["urgent", "a", mover, "bc"[(turn + 1) % 2]]


def test_the_moved_job_is_launched_in_its_new_place(
    client: TestClient, database: Database, queued: dict[str, str]
) -> None:
    move(client, queued["c"], queued["urgent"])

    with database.write() as session:
        claim = claim_next(session, total_slots=1, max_exports=0, max_evaluations=0)

    assert claim is not None
    assert client.get(f"/api/v1/jobs/{queued['c']}").json()["state"] == "launching"


def test_an_evaluation_stays_behind_the_other_jobs(client: TestClient, queued: dict[str, str]) -> None:
    for mover, before in (("measure", "a"), ("a", "measure")):
        response = move(client, queued[mover], queued[before])

        assert (response.status_code, response.json()["error"]) == (409, "cannot_move_before")


def test_only_queued_jobs_are_moved(
    client: TestClient, make_job: Callable[..., str], queued: dict[str, str]
) -> None:
    running = make_job(name="running", state=JobState.RUNNING)

    response = move(client, running, queued["a"])
    assert (response.status_code, response.json()["error"]) == (409, "job_not_queued")
    response = move(client, queued["a"], running)
    assert (response.status_code, response.json()["error"]) == (409, "cannot_move_before")


def test_a_new_priority_places_a_moved_job_by_its_age_again(
    client: TestClient, queued: dict[str, str]
) -> None:
    move(client, queued["c"], queued["a"])

    client.patch(f"/api/v1/jobs/{queued['c']}", json={"priority": 1})
    client.patch(f"/api/v1/jobs/{queued['c']}", json={"priority": 0})

    assert order(client)[:4] == ["urgent", "a", "b", "c"]


def test_expected_starts_follow_the_running_job_and_the_queue(
    client: TestClient, database: Database, make_job: Callable[..., str], settings: Any
) -> None:
    now = utc_now()
    slots = client.get("/api/v1/jobs/queue").json()["total_slots"]
    running = make_job(name="running", state=JobState.RUNNING, gpus=slots)
    with database.write() as session:
        job = service.get_locked_job(session, job_id=running)
        job.first_step, job.step, job.total_steps = 1, 11, 31
        job.first_step_at, job.last_step_at = now - timedelta(seconds=10), now
    first = make_job(name="first", gpus=slots, queued_at=now)
    make_job(name="second", gpus=slots, queued_at=now + timedelta(seconds=1))

    items = client.get("/api/v1/jobs/queue").json()["items"]

    assert items[0]["start"] == {"seconds": 20.0, "jobs_ahead": 0, "unknown": None}
    # Nothing was measured that is like the first, so nobody can tell when it ends.
    assert items[1]["start"] == {"seconds": None, "jobs_ahead": 1, "unknown": "first"}
    assert items[0]["job"]["id"] == first
