"""Sampled responses by prompt: totals, the map over all steps, one prompt followed, a step filtered."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.jobs.rollouts import groups as rollout_groups
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_contracts.events import Rollout, RolloutsEvent

Report = Callable[..., None]


def response(group: str, score: float, *, prompt: str | None = None, **more: Any) -> dict[str, Any]:
    found = {"group": group, "prompt": prompt or f"prompt {group}", "response": "r", "score": score}
    return {**found, "response_tokens": 10, "reward_parts": {"acc": float(score >= 1.0)}, **more}


@pytest.fixture
def job_id(make_job: Callable[..., str]) -> str:
    return make_job()


@pytest.fixture
def report(database: Database, job_id: str) -> Report:
    def write(step: int, *rollouts: dict[str, Any], attempt: int = 1) -> None:
        event = RolloutsEvent(
            time="2026-01-02T03:04:05Z",
            step=step,
            rollouts=[Rollout.model_validate(each) for each in rollouts],
        )
        with database.write() as session:
            rollout_store.write(session, job_id=job_id, attempt=attempt, event=event)

    return write


def read(client: TestClient, job_id: str, place: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/jobs/{job_id}/{place}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_step_tells_its_prompts_without_spread_and_what_they_cost(
    client: TestClient, job_id: str, report: Report
) -> None:
    right = [response("a", 1.0), response("a", 1.0)]
    wrong = [response("b", 0.0, response_tokens=30), response("b", 0.0, response_tokens=30)]
    report(3, *right, *wrong, response("c", 0.0), response("c", 1.0), response("d", 1.0))

    summary = read(client, job_id, "rollout-summary", step=3)

    assert summary["groups"] == {
        "groups": 3, "uniform": 2, "all_correct": 1, "all_wrong": 1, "tokens": 100, "uniform_tokens": 80
    }  # fmt: skip
    assert summary["reward_parts"] == ["acc"]


def test_right_and_wrong_are_not_told_where_rewards_do_not_say(
    client: TestClient, job_id: str, report: Report
) -> None:
    report(1, response("a", 1.0, reward_parts={}), response("a", 1.0, reward_parts={}))

    groups = read(client, job_id, "rollout-summary", step=1)["groups"]

    assert (groups["uniform"], groups["all_correct"], groups["all_wrong"]) == (1, None, None)


def test_the_map_has_a_cell_for_each_prompt_and_step(client: TestClient, job_id: str, report: Report) -> None:
    report(
        1,
        response("1-0", 0.0, prompt="hard"),
        response("1-0", 0.0, prompt="hard"),
        response("1-1", 1.0, prompt="easy"),
    )
    report(4, response("4-0", 1.0, prompt="hard"), response("4-0", 0.0, prompt="hard"))

    found = read(client, job_id, "rollout-map")

    assert found["columns"] == [{"from_step": 1, "to_step": 1}, {"from_step": 4, "to_step": 4}]
    rows = {row["excerpt"]: row for row in found["rows"]}
    assert list(rows) == ["hard", "easy"]
    cells = [
        (cell["column"], cell["step"], cell["mean"], cell["is_uniform"]) for cell in rows["hard"]["cells"]
    ]
    assert cells == [(0, 1, 0.0, True), (1, 4, 0.5, False)]
    assert (rows["hard"]["steps"], rows["hard"]["mean"]) == (2, 0.25)
    assert found["totals"]["groups"] == 2


def test_a_column_of_a_long_run_spans_several_steps(client: TestClient, job_id: str, report: Report) -> None:
    for step in range(10, 30):
        report(step, response(f"{step}-0", float(step >= 20), prompt="same"))

    found = read(client, job_id, "rollout-map", max_columns=5)

    assert [(one["from_step"], one["to_step"]) for one in found["columns"]] == [
        (10, 13), (14, 17), (18, 21), (22, 25), (26, 29)
    ]  # fmt: skip
    (row,) = found["rows"]
    assert [(cell["step"], cell["count"], cell["mean"]) for cell in row["cells"]] == [
        (13, 4, 0.0), (17, 4, 0.0), (21, 4, 0.5), (25, 4, 1.0), (29, 4, 1.0)
    ]  # fmt: skip
    assert read(client, job_id, "rollout-map", max_prompts=1)["prompt_count"] == 1


def test_a_prompt_that_comes_several_times_a_step_is_followed_to_its_first_step(
    client: TestClient, job_id: str, report: Report
) -> None:
    for step in range(1, 4):
        report(step, *(response(f"{step}-{number}", 1.0, prompt="same") for number in range(14)))
    key = read(client, job_id, "rollouts", step=1)["groups"][0]["prompt_key"]

    pages = [read(client, job_id, f"prompts/{key}/rollouts", limit=30)]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(read(client, job_id, f"prompts/{key}/rollouts", limit=30, cursor=cursor))

    assert [[each["step"] for each in page["items"]] for page in pages] == [[3] * 14 + [2] * 14, [1] * 14]
    assert [len(page["groups"]) for page in pages] == [28, 14]


def test_one_prompt_is_followed_over_all_steps_newest_first(
    client: TestClient, job_id: str, report: Report
) -> None:
    said = [{"role": "user", "content": "same"}]
    for step in range(1, 6):
        members = [response(f"{step}-1", float(step), prompt="same", messages=said) for _ in range(2)]
        report(step, response(f"{step}-0", 0.0), *members)
    key = read(client, job_id, "rollouts", step=1)["groups"][1]["prompt_key"]
    place = f"prompts/{key}/rollouts"

    first = read(client, job_id, place, limit=5)
    second = read(client, job_id, place, limit=5, cursor=first["next_cursor"])
    third = read(client, job_id, place, limit=5, cursor=second["next_cursor"])

    pages = [[each["step"] for each in page["items"]] for page in (first, second, third)]
    assert pages == [[5, 5, 4, 4], [3, 3, 2, 2], [1, 1]]
    assert (first["total"], third["next_cursor"]) == (10, None)
    assert [group["messages"] for group in first["groups"]] == [said, said]
    assert [each["step"] for each in read(client, job_id, place, to_step=2)["items"]] == [2, 2, 1, 1]
    assert read(client, job_id, "prompts/unknown/rollouts")["items"] == []
    assert (
        client.get(f"/api/v1/jobs/{job_id}/{place}", params={"cursor": "x"}).json()["error"]
        == "invalid_cursor"
    )


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"text": "ALPHA"}, ["alpha one"]),
    ({"text": "100%"}, ["beta 100%"]),
    ({"text": "prompt b"}, ["beta 100%"]),
    ({"min_tokens": 20}, ["beta 100%"]),
    ({"max_tokens": 10}, ["alpha one"]),
    ({"part": "format"}, ["beta 100%"]),
    ({"part": "format", "min_part": 0.9}, []),
    ({"part": "acc", "min_part": 1.0}, ["alpha one"]),
    ({"group": "a"}, ["alpha one"]),
]


def test_the_responses_of_a_step_are_filtered(client: TestClient, job_id: str, report: Report) -> None:
    parts = {"acc": 0.0, "format": 0.5}
    report(
        1,
        response("a", 1.0, response="alpha one"),
        response("b", 0.0, response="beta 100%", response_tokens=20, reward_parts=parts),
    )

    for query, shown in FILTERS:
        items = read(client, job_id, "rollouts", step=1, **query)["items"]
        assert [each["response"] for each in items] == shown, query


def test_a_range_without_its_part_is_refused(client: TestClient, job_id: str) -> None:
    answer = client.get(f"/api/v1/jobs/{job_id}/rollouts", params={"min_part": 1})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")


def test_a_group_that_comes_in_pieces_is_counted_whole(
    client: TestClient, job_id: str, report: Report
) -> None:
    report(1, response("a", 1.0, messages=[{"role": "user", "content": "q"}]))
    report(1, response("a", 1.0), response("b", 0.0))

    (row,) = (row for row in read(client, job_id, "rollouts", step=1)["groups"] if row["group"] == "a")

    assert (row["count"], row["is_uniform"], row["messages"]) == (2, True, [{"role": "user", "content": "q"}])


def test_a_newer_attempt_replaces_the_groups_of_its_steps(
    client: TestClient, database: Database, job_id: str, report: Report
) -> None:
    report(1, response("a", 1.0))
    report(2, response("b", 1.0))
    report(1, response("c", 0.0), attempt=2)

    assert [row["excerpt"] for row in read(client, job_id, "rollout-map")["rows"]] == ["prompt c", "prompt b"]
    with database.write() as session:
        rollout_groups.truncate(session, job_id=job_id, last_step=1)
    assert [row["excerpt"] for row in read(client, job_id, "rollout-map")["rows"]] == ["prompt c"]
