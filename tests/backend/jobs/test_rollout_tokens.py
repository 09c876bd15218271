"""What was measured of tokens: kept with its response, found by step, gone with it."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import func, select
from trellis_api.core.database import Database
from trellis_api.jobs.models import RolloutTokens
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_contracts.events import Rollout, RolloutsEvent

TRACE = {
    "first": 2, "texts": ["4", "2"], "log_prob": [-0.5, None], "entropy": None, "advantage": [0.5, 0.5],
    "kl": [0.0, 0.1], "difference": None, "not_finite": [1],
}  # fmt: skip


@pytest.fixture
def job_id(make_job: Callable[..., str]) -> str:
    return make_job()


@pytest.fixture
def report(database: Database, job_id: str) -> Callable[..., None]:
    def write(step: int, *traces: dict[str, Any] | None, attempt: int = 1) -> None:
        rollouts = [
            Rollout(group="a", prompt="q", response=f"r{place}", score=1.0, response_tokens=4, tokens=trace)
            for place, trace in enumerate(traces)
        ]
        event = RolloutsEvent(time="2026-01-02T03:04:05Z", step=step, rollouts=rollouts)
        with database.write() as session:
            rollout_store.write(session, job_id=job_id, attempt=attempt, event=event)

    return write


def read(client: TestClient, job_id: str, place: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/jobs/{job_id}/{place}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_tokens_stand_with_the_response_that_they_are_of(
    client: TestClient, job_id: str, report: Callable[..., None]
) -> None:
    report(3, None, None)
    report(3, None, TRACE, None)

    found = read(client, job_id, "rollout-tokens", step=3)

    ((item,), step) = found["items"], found["step"]
    assert (step, item["rollout"]["response"], item["trace"]) == (3, "r1", TRACE)
    number = item["rollout"]["id"]
    assert read(client, job_id, f"rollouts/{number}/tokens") == {"trace": TRACE}
    assert read(client, job_id, f"rollouts/{number + 1}/tokens") == {"trace": None}
    missing = client.get(f"/api/v1/jobs/{job_id}/rollouts/{number + 100}/tokens")
    assert (missing.status_code, missing.json()["error"]) == (404, "rollout_not_found")


def test_the_nearest_step_is_shown_where_none_was_kept(
    client: TestClient, job_id: str, report: Callable[..., None]
) -> None:
    assert read(client, job_id, "rollout-tokens") == {"step": None, "split": "train", "items": []}
    for step in (10, 20):
        report(step, TRACE)
    report(30, None)

    asked = {step: read(client, job_id, "rollout-tokens", step=step)["step"] for step in (0, 14, 15, 16, 99)}

    assert asked == {0: 10, 14: 10, 15: 10, 16: 20, 99: 20}
    assert read(client, job_id, "rollout-tokens")["step"] == 20
    assert read(client, job_id, "rollout-tokens", split="validation")["step"] is None


def test_tokens_go_with_their_response(
    client: TestClient, database: Database, job_id: str, report: Callable[..., None]
) -> None:
    report(1, TRACE)
    report(2, TRACE)
    report(1, None, attempt=2)
    with database.write() as session:
        rollout_store.truncate(session, job_id=job_id, last_step=1)

    with database.read() as session:
        assert session.exec(select(func.count()).select_from(RolloutTokens)).one() == 0
