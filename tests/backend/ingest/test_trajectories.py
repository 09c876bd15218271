"""Trajectories that runs report: kept whole where they are short, else bounded; clean; read one by one."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from trellis_api.jobs.rollouts.trajectory_store import MAX_CHARACTERS, fit

TURN = {"role": "assistant", "text": "I search.", "tokens": 3, "is_trained": True}


def trajectory(*turns: dict[str, Any], reason: str = "answered") -> dict[str, Any]:
    return {"turns": [*turns] or [TURN], "stop_reason": reason, "duration_s": 1.5}


def report(client: TestClient, launched: Any, *trajectories: dict[str, Any] | None, sequence: int = 1) -> Any:
    rollouts = [
        {"group": "g", "prompt": "p", "response": "r", "score": 1.0, "response_tokens": 3, "trajectory": each}
        for each in trajectories
    ]
    events = [{"kind": "rollouts", "time": "2026-01-01T00:00:00Z", "step": 1, "rollouts": rollouts}]
    return client.post(
        f"/api/v1/ingest/jobs/{launched.job_id}/batches",
        json={"attempt": 1, "sequence": sequence, "events": events},
        headers=launched.headers,
    )


def test_a_trajectory_comes_back_as_it_was_reported(
    client: TestClient, anonymous: TestClient, make_launched: Callable[..., Any], admin_token: str
) -> None:
    launched = make_launched()
    call = {"name": "search", "arguments": {"sql": "SELECT 1"}, "result": "[1]", "duration_s": 0.1}
    turns = [{**TURN, "calls": [call]}, {"role": "tool", "text": "[1]", "tokens": 1, "is_trained": False}]
    assert report(client, launched, trajectory(*turns), None).status_code == 200

    client.headers["Authorization"] = f"Bearer {admin_token}"
    place = f"/api/v1/jobs/{launched.job_id}/rollouts"
    listed = client.get(place).json()["items"]
    assert [(each["trajectory"], each["turn_count"], each["stop_reason"]) for each in listed] == [
        (None, 2, "answered"),
        (None, None, None),
    ]
    one = client.get(f"{place}/{listed[0]['id']}").json()["trajectory"]
    assert [turn["role"] for turn in one["turns"]] == ["assistant", "tool"]
    assert one["turns"][0]["calls"][0]["arguments"] == {"sql": "SELECT 1"}
    whole = client.get(place, params={"trajectories": True}).json()["items"]
    assert whole[0]["trajectory"] == one


def test_episodes_are_filtered_by_why_they_ended(
    client: TestClient, make_launched: Callable[..., Any], admin_token: str
) -> None:
    launched = make_launched()
    reasons = ["answered", "turns", "answered"]
    report(client, launched, *(trajectory(reason=reason) for reason in reasons))

    client.headers["Authorization"] = f"Bearer {admin_token}"
    place = f"/api/v1/jobs/{launched.job_id}/rollouts"
    found = client.get(place, params={"stop_reason": "answered"}).json()
    assert len(found["items"]) == 2
    assert found["total"] == 2
    summary = client.get(f"/api/v1/jobs/{launched.job_id}/rollout-summary").json()
    assert summary["stop_reasons"] == {"answered": 2, "turns": 1}
    assert (summary["total"], summary["scores"]) == (3, [1.0, 1.0, 1.0])
    assert client.get(place, params={"stop_reason": "nothing"}).json()["items"] == []


def test_a_rollout_of_another_job_is_not_found(
    client: TestClient, make_launched: Callable[..., Any], admin_token: str
) -> None:
    launched, other = make_launched(), make_launched()
    report(client, launched, trajectory())
    client.headers["Authorization"] = f"Bearer {admin_token}"
    own = client.get(f"/api/v1/jobs/{launched.job_id}/rollouts").json()["items"][0]["id"]

    answer = client.get(f"/api/v1/jobs/{other.job_id}/rollouts/{own}")

    assert (answer.status_code, answer.json()["error"]) == (404, "rollout_not_found")


def test_secrets_and_what_databases_refuse_are_not_kept(
    client: TestClient, make_launched: Callable[..., Any], admin_token: str
) -> None:
    launched = make_launched()
    key = "sk-abcdefghijklmnopqrstuvwxyz123456"
    call = {
        "name": "get",
        "arguments": {"api_key": "hunter2", "url": f"x?k={key}"},
        "result": f"a\x00b {key}",
    }
    assert report(client, launched, trajectory({**TURN, "calls": [call]})).status_code == 200

    client.headers["Authorization"] = f"Bearer {admin_token}"
    found = client.get(f"/api/v1/jobs/{launched.job_id}/rollouts", params={"trajectories": True}).json()
    text = json.dumps(found)
    assert key not in text
    assert "hunter2" not in text
    assert "\\u0000" not in text


@pytest.mark.parametrize(
    "tree",
    [
        trajectory(*({**TURN, "text": "x" * 30_000} for _ in range(20))),
        trajectory(*({**TURN, "text": str(number)} for number in range(10_000))),
        trajectory({**TURN, "calls": [{"name": "t", "arguments": {str(n): "y" * 200 for n in range(3000)}}]}),
    ],
    ids=["long texts", "many turns", "many arguments"],
)
def test_a_trajectory_that_is_too_long_is_shortened_and_says_so(tree: dict[str, Any]) -> None:
    short = fit(tree)

    assert len(json.dumps(short, ensure_ascii=False)) <= MAX_CHARACTERS
    assert short["is_shortened"] is True
    assert short["turns"][0]["text"][:1] == tree["turns"][0]["text"][:1]
    assert short["turns"][-1]["text"][:4] == tree["turns"][-1]["text"][:4]


def test_a_short_trajectory_stays_as_it_is() -> None:
    assert fit(trajectory()) == trajectory()


def test_a_list_does_not_read_trajectories_from_the_database(
    client: TestClient,
    make_launched: Callable[..., Any],
    admin_token: str,
    connection: Any,
) -> None:
    launched = make_launched()
    report(client, launched, *(trajectory() for _ in range(5)))
    client.headers["Authorization"] = f"Bearer {admin_token}"
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        statements.append(statement)

    event.listen(connection, "before_cursor_execute", note)
    client.get(f"/api/v1/jobs/{launched.job_id}/rollouts")

    reading = [each for each in statements if "FROM rollouts" in each]
    assert reading
    assert not any("trajectory" in each for each in reading)
