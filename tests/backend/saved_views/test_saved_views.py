"""Saved views: a page's query string under a name, one list for each page and recipe."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.saved_views import service

VIEWS = "/api/v1/saved-views"


def save(client: TestClient, name: str, query: str = "kind=train&sort=name", **fields: Any) -> dict[str, Any]:
    answer = client.post(VIEWS, json={"page": "jobs", "name": name, "query": query} | fields)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def names(client: TestClient, **params: Any) -> list[str]:
    found = client.get(VIEWS, params={"page": "jobs"} | params)
    assert found.status_code == 200, found.text
    return [each["name"] for each in found.json()["items"]]


def test_views_are_listed_by_name_for_their_page_and_recipe(client: TestClient) -> None:
    save(client, "running")
    save(client, "Failed this week")
    save(client, "rewards", page="charts", scope="grpo", query="only=critic%2Fscore%2Fmean")

    assert names(client) == ["Failed this week", "running"]
    assert names(client, page="charts", scope="grpo") == ["rewards"]
    assert names(client, page="charts", scope="sft") == []


def test_a_view_is_renamed_and_replaced(client: TestClient) -> None:
    made = save(client, "running")
    address = f"{VIEWS}/{made['id']}"

    renamed = client.patch(address, json={"name": "active"}).json()
    replaced = client.patch(address, json={"query": "state=running"}).json()

    assert (renamed["name"], renamed["query"]) == ("active", made["query"])
    assert (replaced["name"], replaced["query"], replaced["created_by"]) == (
        "active",
        "state=running",
        "admin",
    )


def test_a_name_is_taken_once_on_each_page(client: TestClient) -> None:
    save(client, "mine")
    other = save(client, "other")
    save(client, "mine", page="charts", scope="grpo")

    again = client.post(VIEWS, json={"page": "jobs", "name": "mine", "query": ""})
    renamed = client.patch(f"{VIEWS}/{other['id']}", json={"name": "mine"})

    for answer in (again, renamed):
        assert (answer.status_code, answer.json()["error"]) == (409, "saved_view_name_taken")
    assert names(client) == ["mine", "other"]


def test_a_deleted_view_is_gone(client: TestClient) -> None:
    address = f"{VIEWS}/{save(client, 'mine')['id']}"

    assert client.delete(address).status_code == 204

    assert names(client) == []
    answers = [client.delete(address), client.patch(address, json={"name": "x"})]
    assert [(each.status_code, each.json()["error"]) for each in answers] == [
        (404, "saved_view_not_found")
    ] * 2


def test_a_page_has_a_bounded_number_of_views(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_VIEWS", 1)
    save(client, "mine")

    refused = client.post(VIEWS, json={"page": "jobs", "name": "other", "query": ""})

    assert (refused.status_code, refused.json()["error"]) == (409, "too_many_saved_views")


@pytest.mark.parametrize(
    "fields", [{"query": "a b"}, {"query": "a\nb"}, {"page": "login"}, {"scope": "../x"}, {"name": " "}]
)
def test_what_no_page_has_is_refused(client: TestClient, fields: dict[str, str]) -> None:
    refused = client.post(VIEWS, json={"page": "jobs", "name": "mine", "query": ""} | fields)

    assert refused.status_code == 422
    assert next(iter(fields)) in refused.text
