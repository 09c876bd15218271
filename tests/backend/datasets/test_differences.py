"""Comparisons of versions over HTTP: asked for, carried out by a worker, read page by page."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_testing.datasets import add_dataset, add_version
from trellis_testing.uploads import Finish
from trellis_workers.data.tidy import collect

BEFORE = [{"id": number, "text": f"row {number}"} for number in range(20)]
#: Two rows less, one row other, three rows more.
AFTER = [{"id": number, "text": f"row {number}" if number != 7 else "changed"} for number in range(2, 23)]


@pytest.fixture
def compared(database: Database, settings: Settings) -> Dataset:
    """A dataset of two versions."""
    with database.write() as session:
        dataset = add_dataset(session, settings, BEFORE)
        add_version(session, settings, dataset.id, {"train": AFTER, "test": BEFORE[:2]})
        return dataset


@pytest.fixture
def address(compared: Dataset) -> str:
    return f"/api/v1/datasets/{compared.id}/diff"


def ask(client: TestClient, address: str, **body: Any) -> dict[str, Any]:
    response = client.post(address, json=body)
    assert response.status_code == 202, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.fixture
def sides(client: TestClient, compared: Dataset) -> dict[str, str]:
    items = client.get(f"/api/v1/datasets/{compared.id}/versions").json()["items"]
    return {"before": items[1]["id"], "after": items[0]["id"]}


def test_a_comparison_is_asked_for_once_and_read_by_all(
    client: TestClient, address: str, sides: dict[str, str], finish: Finish
) -> None:
    wanted = {**sides, "key": "id"}
    waiting = ask(client, address, **wanted)
    assert (waiting["total"], waiting["task"]["state"]) == (None, "queued")
    assert ask(client, address, **wanted)["task"]["id"] == waiting["task"]["id"]
    assert client.get(address, params=wanted).json()["task"]["id"] == waiting["task"]["id"]
    early = client.get(f"{address}/rows", params={**wanted, "split": "train", "kind": "added"})
    assert (early.status_code, early.json()["error"]) == (409, "diff_not_computed")

    finish()

    found = ask(client, address, before=sides["before"][:8], after="main", key="id")
    assert found == client.get(address, params=wanted).json()
    assert (found["task"], found["before"], found["after"]) == (None, sides["before"], sides["after"])
    assert found["splits"]["train"] == {"added": 3, "removed": 2, "changed": 1, "same": 17}
    assert found["splits"]["test"] == {"added": 2, "removed": 0, "changed": 0, "same": 0}
    assert found["total"] == {"added": 5, "removed": 2, "changed": 1, "same": 17}
    (page,) = (
        client.get(f"{address}/rows", params={**wanted, "split": "train", "kind": kind}).json()
        for kind in ("changed",)
    )
    assert page["row_count"] == 1
    assert page["rows"] == [{"before": {"id": 7, "text": "row 7"}, "after": {"id": 7, "text": "changed"}}]
    added = client.get(
        f"{address}/rows", params={**wanted, "split": "train", "kind": "added", "offset": 1, "limit": 1}
    ).json()
    assert added["rows"] == [{"before": None, "after": {"id": 21, "text": "row 21"}}]
    removed = client.get(f"{address}/rows", params={**wanted, "split": "train", "kind": "removed"}).json()
    assert [row["before"]["id"] for row in removed["rows"]] == [0, 1]


def test_without_a_key_a_changed_row_is_one_less_and_one_more(
    client: TestClient, address: str, sides: dict[str, str], finish: Finish
) -> None:
    ask(client, address, **sides)
    finish()

    assert ask(client, address, **sides)["splits"]["train"] == {
        "added": 4, "removed": 3, "changed": 0, "same": 17,
    }  # fmt: skip


def test_columns_and_statistics_are_shown_side_by_side(
    client: TestClient, database: Database, settings: Settings, finish: Finish
) -> None:
    with database.write() as session:
        dataset = add_dataset(session, settings, [{"id": 1, "old": "x"}])
        before = dataset.head
        add_version(session, settings, dataset.id, [{"id": "1", "new": "x"}])
    address = f"/api/v1/datasets/{dataset.id}/diff"
    ask(client, address, before=before, after="main")
    finish()

    found = ask(client, address, before=before, after="main")

    changes = {each["name"]: (each["before"], each["after"]) for each in found["columns"]}
    assert changes.keys() == {"id", "old", "new"}
    assert changes["old"][1] is None
    assert changes["new"][0] is None
    assert found["statistics_before"] is None


def test_a_comparison_outlives_a_tidying_and_not_its_versions(
    client: TestClient, address: str, sides: dict[str, str], finish: Finish, settings: Settings,
    database: Database, compared: Dataset,
) -> None:  # fmt: skip
    ask(client, address, **sides)
    finish()

    collect(settings, database)

    assert ask(client, address, **sides)["total"] is not None
    client.delete(f"/api/v1/datasets/{compared.id}").raise_for_status()
    collect(settings, database)
    assert not list((settings.data_root / "versions" / "differences").iterdir())


def test_what_nobody_has_asked_for_is_not_known(
    client: TestClient, address: str, sides: dict[str, str]
) -> None:
    found = client.get(address, params=sides).json()

    assert (found["task"], found["total"]) == (None, None)


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"before": "nothing"}, 404, "version_not_found"),
        ({"after": "no\u0000"}, 422, "invalid_request"),
        ({"key": "nothing"}, 422, "diff_not_possible"),
        ({"key": "x" * 201}, 422, "invalid_request"),
        ({"more": 1}, 422, "invalid_request"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    client: TestClient, address: str, sides: dict[str, str], changes: dict[str, Any], status: int, code: str
) -> None:
    response = client.post(address, json={**sides, **changes})

    assert (response.status_code, response.json()["error"]) == (status, code)


def test_rows_of_a_split_that_neither_has(
    client: TestClient, address: str, sides: dict[str, str], finish: Finish
) -> None:
    ask(client, address, **sides)
    finish()

    for split in ("nothing", "../../x"):
        response = client.get(f"{address}/rows", params={**sides, "split": split, "kind": "added"})
        assert (response.status_code, response.json()["error"]) == (422, "diff_not_possible")
