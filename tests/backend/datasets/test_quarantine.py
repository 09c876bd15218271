"""Pages of rows that were not taken: the last one costs what the first one does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.settings import Settings
from trellis_api.datasets import quarantine, quarantine_index
from trellis_api.datasets.quarantine_index import STEP, index_place
from trellis_testing.uploads import DATASETS, Upload

BAD_ROWS = 4 * STEP + 30
BAD = b"".join(b'{"question": %d\n' % number for number in range(BAD_ROWS))
GOOD = b'{"question": "1+1", "answer": "2"}\n'


@pytest.fixture
def dataset(upload: Upload) -> dict[str, Any]:
    """A dataset with many rows in quarantine."""
    return upload(GOOD + BAD)


@pytest.fixture
def file(dataset: dict[str, Any], settings: Settings) -> Path:
    (path,) = (settings.data_root / "datasets" / dataset["id"] / "quarantine").glob("*.jsonl")
    return path


def page(client: TestClient, dataset: dict[str, Any], **params: int) -> dict[str, Any]:
    answer = client.get(f"{DATASETS}/{dataset['id']}/quarantine", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def lines(found: dict[str, Any]) -> list[int]:
    return [row["line"] for row in found["rows"]]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each page has looked at."""
    counts: list[int] = []

    def watch(rows: Iterator[bytes], start: int, end: int) -> Iterator[bytes]:
        found = [line for _, line in zip(range(end), rows, strict=False)]
        counts.append(len(found))
        return iter(found[start:])

    monkeypatch.setattr(quarantine, "islice", watch)
    return counts


@pytest.mark.usefixtures("file")
def test_every_page_looks_at_few_rows(client: TestClient, dataset: dict[str, Any], read: list[int]) -> None:
    for offset in (0, STEP - 5, STEP, 3 * STEP + 7, 4 * STEP + 25):
        found = page(client, dataset, offset=offset, limit=10)

        # The good row is line 1.
        assert lines(found) == [n + 2 for n in range(offset, min(offset + 10, BAD_ROWS))]
        assert found["row_count"] == BAD_ROWS
    assert max(read) <= STEP + 10


def test_the_file_is_read_through_once(
    client: TestClient, dataset: dict[str, Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page(client, dataset, offset=BAD_ROWS - 1)

    def refuse(*_: object) -> None:
        raise AssertionError("it was read through again")

    monkeypatch.setattr(quarantine_index, "_read_through", refuse)
    assert lines(page(client, dataset, offset=2 * STEP, limit=1)) == [2 * STEP + 2]
    assert page(client, dataset, offset=BAD_ROWS)["rows"] == []
    assert index_place(file).is_file()


def test_the_beginning_needs_no_index(client: TestClient, dataset: dict[str, Any], file: Path) -> None:
    assert lines(page(client, dataset, limit=2)) == [2, 3]
    assert not index_place(file).exists()


@pytest.mark.parametrize("content", ["", "{}", "no json"])
def test_an_index_of_another_file_is_made_again(
    client: TestClient, dataset: dict[str, Any], file: Path, content: str
) -> None:
    page(client, dataset, offset=STEP)
    if content:
        index_place(file).write_text(content)
    else:
        rows = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(rows[1:] + rows[:1]))

    assert lines(page(client, dataset, offset=STEP, limit=1)) == [STEP + (2 if content else 3)]


def test_reasons_of_an_import_that_failed_are_counted_once(
    client: TestClient, upload: Upload, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = upload(b"no rows")
    place = quarantine.locate(settings, dataset_id=dataset["id"], task_id=dataset["task"]["id"])
    place.parent.mkdir(parents=True, exist_ok=True)
    row = {"source": "a", "line": 1, "row": 1, "column": None, "code": "not_json", "message": "m", "raw": ""}
    place.write_text("".join(json.dumps(row) + "\n" for _ in range(30)))

    first = page(client, dataset)
    monkeypatch.setattr(quarantine_index, "_read_through", lambda *_: pytest.fail("counted again"))
    second = page(client, dataset)

    assert first["reasons"] == second["reasons"] == {"not_json": 30}


def test_a_disk_without_room_for_the_index_keeps_no_page_back(
    client: TestClient, dataset: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(quarantine_index, "write_atomically", refuse)

    assert lines(page(client, dataset, offset=STEP, limit=1)) == [STEP + 2]
