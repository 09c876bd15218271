"""Name, notes, tags, star and priority of a job."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.ids import new_id
from trellis_contracts.states import JobState


def edit(client: TestClient, job_id: str, **changes: Any) -> dict[str, Any]:
    response = client.patch(f"/api/v1/jobs/{job_id}", json=changes)
    assert response.status_code == 200, response.text
    job: dict[str, Any] = response.json()
    return job


@pytest.mark.smoke
def test_what_is_not_named_stays_as_it_is(client: TestClient, make_job: Callable[..., str]) -> None:
    job_id = make_job(name="first try", tags=("maths",))

    edit(client, job_id, notes="# Why\n\nA **higher** rate.")
    edit(client, job_id, name="rate 1e-4", is_starred=True)

    job = client.get(f"/api/v1/jobs/{job_id}").json()
    assert (job["name"], job["tags"], job["is_starred"]) == ("rate 1e-4", ["maths"], True)
    assert job["notes"] == "# Why\n\nA **higher** rate."
    (listed,) = client.get("/api/v1/jobs", params={"starred": True}).json()["items"]
    assert listed["id"] == job_id
    assert listed["notes"] is None, "a list would carry the notes of every job"
    assert client.get("/api/v1/jobs", params={"starred": False}).json()["items"] == []


def test_tags_are_replaced_or_changed_one_by_one(client: TestClient, make_job: Callable[..., str]) -> None:
    job_id = make_job(tags=("a", "b"))

    assert edit(client, job_id, add_tags=["c", "a"], remove_tags=["b"])["tags"] == ["a", "c"]
    assert edit(client, job_id, tags=["x"])["tags"] == ["x"]
    assert edit(client, job_id, tags=[])["tags"] == []
    assert client.patch(f"/api/v1/jobs/{job_id}", json={"tags": [], "add_tags": ["c"]}).status_code == 422


def test_a_job_takes_no_more_than_32_tags(client: TestClient, make_job: Callable[..., str]) -> None:
    job_id = make_job(tags=tuple(f"tag {number}" for number in range(32)))

    response = client.patch(f"/api/v1/jobs/{job_id}", json={"name": "renamed", "add_tags": ["one more"]})

    assert (response.status_code, response.json()["error"]) == (422, "too_many_tags")
    assert client.get(f"/api/v1/jobs/{job_id}").json()["name"] != "renamed"


def test_a_priority_moves_a_queued_job_and_no_other(client: TestClient, make_job: Callable[..., str]) -> None:
    first, second = make_job(name="first"), make_job(name="second")
    done = make_job(name="done", state=JobState.SUCCEEDED)

    assert edit(client, second, priority=5)["queue_position"] == 1

    assert client.get(f"/api/v1/jobs/{first}").json()["queue_position"] == 2
    response = client.patch(f"/api/v1/jobs/{done}", json={"priority": 5})
    assert (response.status_code, response.json()["error"]) == (409, "job_not_queued")
    # A form that sends all of its fields back changes nothing of it.
    assert edit(client, done, priority=0, name="still done")["name"] == "still done"


@pytest.mark.parametrize(
    "changes",
    [{"name": "  "}, {"notes": "x" * 20_001}, {"priority": 101}, {"colour": "red"}, {"notes": "\x00"}],
)
def test_what_a_job_cannot_hold_is_refused(
    client: TestClient, make_job: Callable[..., str], changes: dict[str, Any]
) -> None:
    job_id = make_job()

    assert client.patch(f"/api/v1/jobs/{job_id}", json=changes).status_code == 422


def test_an_unknown_job_is_not_found(client: TestClient) -> None:
    response = client.patch(f"/api/v1/jobs/{new_id('job')}", json={"name": "x"})

    assert (response.status_code, response.json()["error"]) == (404, "job_not_found")


def test_open_pages_read_an_edited_job_again(client: TestClient, make_job: Callable[..., str]) -> None:
    job_id = make_job()
    before = client.get(f"/api/v1/jobs/{job_id}").json()["last_event_id"]

    assert edit(client, job_id, name="renamed")["last_event_id"] == before + 1
