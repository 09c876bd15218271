"""The list of jobs: filters, and pages that neither repeat nor miss a job."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event
from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import encode_cursor
from trellis_contracts.states import JobState


def names(client: TestClient, **filters: Any) -> list[str]:
    response = client.get("/api/v1/jobs", params=filters)
    assert response.status_code == 200, response.text
    return [job["name"] for job in response.json()["items"]]


def test_every_filter_that_is_given_must_hold(client: TestClient, make_job: Callable[..., str]) -> None:
    make_job(name="grpo on maths", tags=("maths",))
    make_job(name="sft on maths", recipe="sft", tags=("maths", "old"))
    make_job(name="100% done", state=JobState.SUCCEEDED)

    assert names(client, tag="maths", recipe="sft") == ["sft on maths"]
    assert names(client, text="MATHS", recipe="grpo") == ["grpo on maths"]
    assert names(client, state=["succeeded", "failed"]) == ["100% done"]
    assert names(client, text="%") == ["100% done"]
    assert names(client, tag="none") == []


def test_jobs_are_found_by_the_environment_and_the_workflow_of_their_agents(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    make_job(name="people", params={"environment": "env_a", "total_steps": 3})
    make_job(name="own", params={"environment": "env_a", "workflow": "wfl_a"})
    make_job(name="tools", params={"environment": "env_b"})
    make_job(name="other", params={"dataset": "env_a"})

    assert sorted(names(client, environment="env_a")) == ["own", "people"]
    assert names(client, environment="env_a", workflow="wfl_a") == ["own"]
    assert names(client, workflow="env_a") == []


def test_pages_follow_each_other_while_jobs_are_added(
    client: TestClient, make_job: Callable[..., str]
) -> None:
    now = utc_now()
    for number in range(7):
        # Pairs share an instant: the id decides between them.
        make_job(name=f"job {number}", created_at=now + timedelta(seconds=number // 2))

    seen: list[str] = []
    cursor = None
    while True:
        page = client.get(
            "/api/v1/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})}
        ).json()
        seen += [job["name"] for job in page["items"]]
        make_job(name="newcomer", created_at=now + timedelta(hours=1))
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert sorted(seen) == [f"job {number}" for number in range(7)]
    assert [int(name[-1]) // 2 for name in seen] == [3, 2, 2, 1, 1, 0, 0]


@pytest.mark.parametrize("cursor", ["x", "bnVsbA", "WyJhIiwiYiJd", "é"])
def test_a_made_up_cursor_is_refused(client: TestClient, cursor: str) -> None:
    response = client.get("/api/v1/jobs", params={"cursor": cursor})

    assert response.status_code == 422


def test_the_queue_goes_by_priority_then_by_age(client: TestClient, make_job: Callable[..., str]) -> None:
    now = utc_now()
    make_job(name="old", queued_at=now - timedelta(minutes=2))
    make_job(name="new", queued_at=now)
    make_job(name="urgent", queued_at=now, priority=1)

    items = client.get("/api/v1/jobs").json()["items"]

    positions = {job["name"]: job["queue_position"] for job in items}
    assert positions == {"urgent": 1, "old": 2, "new": 3}


def test_an_unknown_job_is_not_found(client: TestClient) -> None:
    response = client.get("/api/v1/jobs/job_aaaaaaaaaaaa")

    assert response.status_code == 404
    assert response.json()["error"] == "job_not_found"


def test_an_id_that_is_none_is_malformed(client: TestClient) -> None:
    response = client.get("/api/v1/jobs/..%2F..")

    assert response.status_code in {404, 422}


def test_a_list_takes_as_many_queries_as_one_job(client: TestClient, make_job: Callable[..., str]) -> None:
    statements: list[str] = []

    def note(*seen: Any) -> None:
        statements.append(seen[2])

    def count_queries(limit: int) -> int:
        statements.clear()
        assert len(client.get("/api/v1/jobs", params={"limit": limit}).json()["items"]) == limit
        return len(statements)

    for _ in range(5):
        make_job(
            model_id=new_id("mdl"), dataset_id=new_id("ds"), state=JobState.FAILED, cause="out_of_memory"
        )

    event.listen(Engine, "before_cursor_execute", note)
    try:
        of_one, of_five = count_queries(1), count_queries(5)
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert of_five == of_one > 0


@pytest.mark.parametrize(
    "position", [("2026-01-01T00:00:00", "job_a"), ("2026-01-01T00:00:00Z", "a\0"), ("x", "y")]
)
def test_a_cursor_that_the_api_did_not_make_is_malformed(
    client: TestClient, position: tuple[str, str]
) -> None:
    response = client.get("/api/v1/jobs", params={"cursor": encode_cursor(*position)})

    assert response.status_code == 422
    assert response.json()["error"] == "invalid_cursor"


@pytest.mark.parametrize("field", ["environment", "workflow"])
def test_a_filter_longer_than_any_name_is_refused(client: TestClient, field: str) -> None:
    assert client.get("/api/v1/jobs", params={field: "x" * 200}).status_code == 200
    assert client.get("/api/v1/jobs", params={field: "x" * 201}).status_code == 422
