"""Pages of rows that are long: the answer has a bound, and says what of it is not whole."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.core.texts import CUT_MARK
from trellis_api.datasets import cutting, version_pages
from trellis_testing.datasets import add_dataset

Rows = list[dict[str, Any]]
Page = Callable[..., dict[str, Any]]


@pytest.fixture
def page(client: TestClient, database: Database, settings: Settings) -> Page:
    """A page of a new dataset with these rows."""

    def read(content: Rows, *, text: str | None = None, **params: Any) -> dict[str, Any]:
        with database.write() as session:
            address = f"/api/v1/datasets/{add_dataset(session, settings, content).id}/rows"
        if text is None:
            answer = client.get(address, params=params)
        else:
            answer = client.post(f"{address}/search", json={"text": text, **params})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return read


def test_an_answer_has_a_bound_however_long_rows_are(page: Page) -> None:
    content = [{"question": f"q{n}", "answer": "数" * 1_000_000} for n in range(8)]

    found = page(content)

    texts = [row["answer"] for row in found["rows"]]
    assert [row["question"] for row in found["rows"]] == [f"q{n}" for n in range(8)]
    assert 3_900_000 < sum(len(each) for each in texts) <= cutting.MOST_CHARACTERS
    assert all(each.endswith("数" + CUT_MARK) for each in texts)
    assert found["cut"] == [{"row": n, "column": "answer"} for n in range(8)]


def test_a_row_alone_shows_more_of_itself(page: Page) -> None:
    content = [{"question": f"q{n}", "answer": "x" * 1_000_000} for n in range(8)]

    found = page(content, offset=3, limit=1)

    assert (found["rows"], found["cut"]) == ([content[3]], [])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of few characters."""
    monkeypatch.setattr(cutting, "MOST_CHARACTERS", 20_000)


@pytest.mark.usefixtures("small")
def test_one_long_row_takes_what_short_ones_leave(page: Page) -> None:
    content = [{"question": f"q{n}", "answer": "a"} for n in range(50)]
    content.append({"question": "long", "answer": "x" * 19_000})

    found = page(content, limit=200)

    assert (found["rows"], found["cut"]) == (content, [])


@pytest.mark.usefixtures("small")
def test_what_is_found_has_a_bound_too(page: Page) -> None:
    content = [{"question": f"q{n}", "answer": "needle " * 2000} for n in range(10)]

    found = page(content, text="needle")

    assert found["positions"] == list(range(10))
    assert sum(len(row["answer"]) for row in found["rows"]) <= 20_000
    assert found["cut"] == [{"row": n, "column": "answer"} for n in range(10)]


@pytest.mark.usefixtures("small")
def test_long_texts_are_cut_and_short_ones_beside_them_stay(page: Page) -> None:
    turns = [{"role": "user", "content": "y" * 30_000}, {"role": "assistant", "content": "yes"}]

    found = page([{"messages": turns, "tag": "z" * 150}])

    (row,) = found["rows"]
    assert [turn["role"] for turn in row["messages"]] == ["user", "assistant"]
    assert row["messages"][0]["content"].endswith("y" + CUT_MARK)
    assert (row["messages"][1]["content"], row["tag"]) == ("yes", "z" * 150)
    assert found["cut"] == [{"row": 0, "column": "messages"}]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("item", [7, "word", {"role": "user", "content": "hello"}])
def test_lists_of_very_many_things_end_earlier(page: Page, item: Any) -> None:
    found = page([{"items": [item] * 40_000, "label": "short"}])

    (row,) = found["rows"]
    assert 0 < len(row["items"]) < 40_000
    assert row["items"][-1] == item
    assert found["cut"][0] == {"row": 0, "column": "items"}
    assert len(str(row)) < 200_000


def test_rows_are_held_a_few_at_a_time(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    content = [{"question": f"q{n}", "answer": str(n) * 100} for n in range(30)]
    taken: list[int] = []
    take = version_pages.take_rows

    def watch(*args: Any) -> Any:
        taken.append(len(args[-1]))
        return take(*args)

    monkeypatch.setattr(version_pages, "take_rows", watch)
    monkeypatch.setattr(version_pages, "_HELD_BYTES", 1500)

    assert page(content, offset=4, limit=20)["rows"] == content[4:24]
    assert len(taken) > 1
    assert sum(taken) == 20
