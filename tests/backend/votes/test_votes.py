"""Votes on two answers: how they are kept, win rates, and datasets of preference pairs."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs.models import Checkpoint
from trellis_api.models.models import Model
from trellis_api.votes import repository
from trellis_api.votes.models import Vote
from trellis_api.votes.schemas import VoteFilter
from trellis_testing.data_tasks import finish_data_tasks

from tests.backend.conftest import build_model

VOTES = "/api/v1/votes"


def vote(
    client: TestClient, verdict: str, a: str = "base", b: str = "trained", **fields: Any
) -> dict[str, Any]:
    body = {
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "1+1="}],
        "a": {"model": a, "text": "3"},
        "b": {"model": b, "text": "2"},
        "verdict": verdict,
    } | fields
    answer = client.post(VOTES, json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


SAMPLING = {
    "temperature": 0.5, "stop": ["\n"], "top_k": 20, "min_p": 0.1,
    "presence_penalty": 0.5, "frequency_penalty": -0.5,
}  # fmt: skip


def rates(client: TestClient, **params: Any) -> list[dict[str, Any]]:
    return list(client.get(f"{VOTES}/win-rates", params=params).json()["items"])


def test_a_vote_is_kept_whatever_stood_where(client: TestClient) -> None:
    made = vote(client, "a", a="trained", b="base", settings={**SAMPLING, "seed": 1})

    assert (made["a"]["model"], made["b"]["model"], made["verdict"]) == ("base", "trained", "b")
    assert (made["b"]["text"], made["voter"], made["is_blind"]) == ("3", "admin", False)
    (listed,) = client.get(VOTES).json()["items"]
    assert listed == made
    assert {name: listed["settings"][name] for name in SAMPLING} == SAMPLING


def test_the_win_rate_has_the_interval_of_wilson_and_leaves_ties_out(client: TestClient) -> None:
    for verdict in ("b", "b", "b", "a", "tie", "neither"):
        vote(client, verdict)
    vote(client, "a", a="trained", b="base")  # the other way round: one more for trained

    (found,) = rates(client)

    assert (found["wins_a"], found["wins_b"], found["ties"], found["votes"]) == (1, 4, 2, 7)
    assert found["win_rate"] == 0.2
    # Wilson (1927) for 1 of 5 at 95 %.
    assert (round(found["low"], 4), round(found["high"], 4)) == (0.0362, 0.6245)


def test_pairs_are_told_apart_and_blind_votes_alone_can_be_counted(client: TestClient) -> None:
    vote(client, "a")
    vote(client, "b", is_blind=True)
    vote(client, "tie", a="base", b="other")
    vote(client, "a", a="base", b="base")

    assert [(each["model_b"], each["votes"]) for each in rates(client)] == [("trained", 2), ("other", 1)]
    assert [each["win_rate"] for each in rates(client, blind_only=True)] == [0.0]
    assert rates(client, model=["other", "base"])[0]["win_rate"] is None
    assert len(client.get(VOTES, params={"model": "trained"}).json()["items"]) == 2


def test_votes_are_filtered_by_the_id_of_a_model(client: TestClient, model: Model) -> None:
    mine = vote(client, "a", a=model.name, b="other")
    vote(client, "b")

    assert client.get(VOTES, params={"model": model.id}).json()["items"] == [mine]
    assert rates(client, model=["other", model.id]) == rates(client, model=[model.name, "other"])


def test_a_vote_on_a_name_that_moves_is_one_on_what_it_meant(
    client: TestClient, model: Model, database: Database, settings: Settings, make_job: Callable[..., str]
) -> None:
    job_id = make_job(model_id=model.id)
    with database.write() as session:
        other = build_model(settings, name="other")
        session.add(other)
        session.add_all(
            Checkpoint(job_id=job_id, step=step, attempt=1, path="x", size_bytes=1, created_at=utc_now())
            for step in (100, 200)
        )
    for each in (model, other):
        client.post("/api/v1/registry", json={"name": "bot", "model": each.id})

    alias = "/api/v1/registry/bot/aliases/production"
    assert client.put(alias, json={"version": 1}).status_code == 200
    before = vote(client, "a", a="bot:production", b=f"{job_id}:latest")
    assert client.put(alias, json={"version": 2}).status_code == 200
    after = vote(client, "b", a="bot:production", b="bot:1")

    assert {before["a"]["model"], before["b"]["model"]} == {model.name, f"{job_id}:200"}
    assert {after["a"]["model"], after["b"]["model"]} == {model.name, "other"}
    named = client.get(VOTES, params={"model": ["bot:production", "bot:1"]}).json()["items"]
    assert named == [after]


def test_votes_that_were_kept_under_an_alias_are_still_found(
    client: TestClient, model: Model, database: Database
) -> None:
    kept = vote(client, "a", a="bot:production", b="trained")  # there is no such alias yet
    client.post("/api/v1/registry", json={"name": "bot", "model": model.id})
    client.put("/api/v1/registry/bot/aliases/production", json={"version": 1})

    assert client.get(VOTES, params={"model": "bot:production"}).json()["items"] == [kept]
    assert rates(client, model=["trained", "bot:production"])[0]["wins_a"] == 1


@pytest.mark.slow
def test_votes_become_a_dataset_that_dpo_learns_from(
    client: TestClient, settings: Settings, database: Database
) -> None:
    chosen = vote(client, "b", is_blind=True)
    vote(client, "tie", is_blind=True)
    vote(client, "a")
    vote(client, "a", is_blind=True)

    made = client.post(
        f"{VOTES}/dataset", json={"name": "votes", "blind_only": True, "models": ["trained", "base"]}
    )
    assert made.status_code == 201, made.text
    finish_data_tasks(settings, database)

    dataset = client.get(f"/api/v1/datasets/{made.json()['id']}").json()
    assert (dataset["state"], dataset["format"], dataset["row_count"]) == ("ready", "preference", 2)
    rows = client.get(f"/api/v1/datasets/{dataset['id']}/rows").json()["rows"]
    assert rows[0]["prompt"] == chosen["messages"]
    assert rows[0]["chosen"] == [{"role": "assistant", "content": "2"}]
    assert rows[0]["rejected"] == [{"role": "assistant", "content": "3"}]
    assert (rows[0]["chosen_model"], rows[0]["vote"]) == ("trained", chosen["id"])
    assert rows[1]["chosen_model"] == "base"


def test_without_a_decision_there_is_nothing_to_learn(client: TestClient, settings: Settings) -> None:
    vote(client, "tie")
    same = {"a": {"model": "base", "text": "2"}, "b": {"model": "trained", "text": "2"}, "verdict": "a"}
    body = {"messages": [{"role": "user", "content": "?"}], **same}
    assert client.post(VOTES, json=body).status_code == 201

    answer = client.post(f"{VOTES}/dataset", json={"name": "votes"})

    assert (answer.status_code, answer.json()["error"]) == (409, "no_votes_to_learn_from")
    assert client.get("/api/v1/datasets").json()["items"] == []
    assert list((settings.data_root / "uploads").glob("up_*")) == []


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "c"},
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"a": {"model": "", "text": "x"}},
        {"more": 1},
    ],
)
def test_what_is_no_vote_is_refused(client: TestClient, change: dict[str, Any]) -> None:
    body = {
        "messages": [{"role": "user", "content": "?"}],
        "a": {"model": "x", "text": "1"},
        "b": {"model": "y", "text": "2"},
        "verdict": "a",
    }

    assert client.post(VOTES, json=body | change).status_code == 422
    assert client.get(VOTES).json()["items"] == []


def test_a_vote_has_a_bounded_size(client: TestClient) -> None:
    long = {"model": "x", "text": "1" * 199_999}
    body = {"messages": [{"role": "user", "content": "??"}], "a": long, "b": long, "verdict": "a"}
    assert client.post(VOTES, json=body).status_code == 201

    answer = client.post(VOTES, json=body | {"messages": [{"role": "user", "content": "???"}]})

    assert answer.status_code == 422
    assert "at most 400,000 characters, not 400,001" in answer.text


def test_few_votes_are_read_at_once(client: TestClient, database: Database) -> None:
    for _ in range(25):
        vote(client, "a")
    read: list[str] = []

    def note(row: Vote, _context: object) -> None:
        read.append(row.id)

    event.listen(Vote, "load", note)
    try:
        with database.read() as session:
            next(repository.iterate_decided(session, VoteFilter()))
    finally:
        event.remove(Vote, "load", note)

    assert len(read) == 20
    assert client.get(VOTES, params={"limit": 51}).status_code == 422


def test_a_vote_is_forgotten(client: TestClient) -> None:
    made = vote(client, "a")

    assert client.delete(f"{VOTES}/{made['id']}").status_code == 204

    assert client.delete(f"{VOTES}/{made['id']}").json()["error"] == "vote_not_found"
    assert rates(client) == []
