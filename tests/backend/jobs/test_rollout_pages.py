"""Pages of a step's responses: every response once, prompts whole, whatever the order and the filter."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from trellis_api.core.database import Database
from trellis_api.core.pagination import InvalidCursor, encode_cursor
from trellis_api.jobs.models import RolloutSample
from trellis_api.jobs.rollouts import store as rollout_store
from trellis_api.jobs.rollouts.pages import Mark, Position, RolloutFilter, RolloutOrder, arrange, cut
from trellis_contracts.states import JobState

SCORES = st.none() | st.floats(-1, 1)


def mark(number: int, group: str, score: float | None = None, reason: str | None = None) -> Mark:
    return Mark(number, group, score, reason)


@given(
    members=st.lists(st.tuples(st.sampled_from("abcd"), SCORES), max_size=40),
    order=st.sampled_from(RolloutOrder),
    limit=st.integers(1, 12),
)
def test_pages_hold_every_response_once_and_split_a_prompt_only_where_it_fills_a_page(
    members: list[tuple[str, float | None]], order: RolloutOrder, limit: int
) -> None:
    marks = [mark(number, group, score) for number, (group, score) in enumerate(members, 1)]
    places = arrange(marks, order)
    sizes = {group: sum(each.group == group for each in marks) for group in "abcd"}
    seen: list[Mark] = []
    after, has_more = None, True
    while has_more:
        page, has_more = cut(places, after=after, limit=limit)
        assert len(page) <= limit
        for group in {each.group for _, each in page}:
            count = sum(each.group == group for _, each in page)
            assert count == sizes[group] or sizes[group] > limit
        if page:
            after = Position.decode(Position(7, page[-1][0]).encode()).key
        seen += [each for _, each in page]
    assert seen == [each for _, each in places]
    assert sorted(each.id for each in seen) == [each.id for each in marks]


@pytest.mark.parametrize(
    ("order", "groups"),
    [("sampled", "mgbn"), ("worst", "bmgn"), ("best", "gmbn"), ("spread", "mgbn")],
)
def test_prompts_are_ordered_by_the_scores_of_their_responses(order: str, groups: str) -> None:
    marks = [mark(1, "m", 0.0), mark(2, "g", 1.0), mark(3, "m", 1.0), mark(4, "b", 0.0), mark(5, "n")]

    found = dict.fromkeys(each.group for _, each in arrange(marks, RolloutOrder(order)))

    assert "".join(found) == groups


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (RolloutFilter(), [1, 2, 3]),
        (RolloutFilter(stop_reason="turns"), [2]),
        (RolloutFilter(min_score=0.5), [1]),
        (RolloutFilter(max_score=0.5), [1, 2]),
        (RolloutFilter("turns", 0.3, None), []),
    ],
)
def test_what_is_listed_fits_every_condition(wanted: RolloutFilter, ids: list[int]) -> None:
    marks = [mark(1, "a", 0.5, "answered"), mark(2, "a", 0.25, "turns"), mark(3, "b", None, "answered")]

    assert [each.id for each in marks if wanted.fits(each)] == ids


@pytest.mark.parametrize(
    "position", [("1", 0, 1, 1), (1, "0", 1, 1), (1, 0, True, 1), (-1, 0, 1, 1), (2**70, 0, 1, 1), (1, 0, 1)]
)
def test_a_cursor_of_somebody_else_is_refused(position: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidCursor):
        Position.decode(encode_cursor(*position))


def add(database: Database, job_id: str, step: int, group: str, score: float) -> None:
    sample = RolloutSample(
        job_id=job_id, attempt=1, step=step, split="train", group=group, prompt=group, response="r",
        score=score, response_tokens=1,
    )  # fmt: skip
    with database.write() as session:
        session.add(sample)


def test_a_list_goes_on_in_its_step_while_newer_responses_come(
    client: TestClient, database: Database, make_job: Any
) -> None:
    job_id = make_job(state=JobState.RUNNING)
    for group, score in [("a", 0.0), ("b", 1.0), ("a", 1.0), ("c", 0.5)]:
        add(database, job_id, 3, group, score)
    place = f"/api/v1/jobs/{job_id}/rollouts"

    first = client.get(place, params={"limit": 2}).json()
    assert (first["step"], first["total"]) == (3, 4)
    assert [(each["group"], each["number"]) for each in first["items"]] == [("a", 1), ("a", 2)]
    add(database, job_id, 3, "d", 0.0)
    add(database, job_id, 4, "z", 0.0)
    second = client.get(place, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert second["step"] == 3
    assert [each["group"] for each in second["items"]] == ["b", "c"]
    third = client.get(place, params={"limit": 2, "cursor": second["next_cursor"]}).json()
    assert ([each["group"] for each in third["items"]], third["next_cursor"]) == (["d"], None)

    one = client.get(f"{place}/{third['items'][0]['id']}").json()
    assert (one["number"], one["step"], one["split"]) == (5, 3, "train")
    assert client.get(place, params={"cursor": "x"}).json()["error"] == "invalid_cursor"
    assert client.get(place, params={"step": 3, "min_score": 0.5, "order": "best"}).json()["total"] == 3


def test_a_response_that_a_newer_attempt_replaces_while_it_is_read_is_not_found(
    client: TestClient, database: Database, make_job: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = make_job()
    add(database, job_id, 3, "a", 1.0)
    place = f"/api/v1/jobs/{job_id}/rollouts"
    number = client.get(place).json()["items"][0]["id"]
    monkeypatch.setattr(rollout_store, "list_marks", lambda *_, **__: [])

    answer = client.get(f"{place}/{number}")

    assert (answer.status_code, answer.json()["error"]) == (404, "rollout_not_found")


def test_a_step_of_more_responses_than_a_query_takes_variables_is_read_whole(
    database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    add(database, job_id, 3, "a", 0.0)
    add(database, job_id, 3, "b", 1.0)
    with database.read() as session:
        marks = rollout_store.list_marks(session, job_id=job_id, step=3, split="train")
        first, last = (mark.id for mark in marks)
        ids = [last, *range(last + 1, last + 70_000), first]
        assert [each.group for each in rollout_store.read(session, ids=ids)] == ["b", "a"]
