"""Imports, from the request to the version: bad rows, splits, appended rows, failures and retries."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import ROWS


def test_an_upload_becomes_a_dataset_with_one_version(platform: Any) -> None:
    made = platform.upload(ROWS)
    assert made["state"] == "creating"
    assert made["task"]["state"] == "queued"

    platform.finish()

    dataset = platform.get(f"/datasets/{made['id']}")
    assert dataset["state"] == "ready"
    assert dataset["task"] is None
    assert (dataset["row_count"], dataset["splits"]) == (len(ROWS), {"train": len(ROWS)})
    assert dataset["format"] == "prompt-answer"
    assert dataset["format_columns"] == {"prompt": "prompt", "answer": "answer"}
    assert {each["code"] for each in dataset["warnings"]} == {"empty_values"}
    history = platform.get(f"/datasets/{made['id']}/versions")["items"]
    assert [each["id"] for each in history] == [dataset["head"]]
    task = platform.get("/data-tasks", dataset=made["id"])["items"][0]
    assert (task["state"], task["attempt"], task["made_version"]) == ("succeeded", 1, dataset["head"])
    result = platform.task(task["id"])["result"]
    assert (result["rows"], result["quarantined"], result["version"]) == (len(ROWS), 0, dataset["head"])
    # What is no longer needed is gone.
    assert not platform.folder(task["id"]).exists()
    assert not list((platform.settings.data_root / "uploads").glob("up_*"))


def test_a_real_child_process_does_the_same(platform: Any) -> None:
    made = platform.upload(ROWS)

    platform.finish(in_child=True)

    dataset = platform.get(f"/datasets/{made['id']}")
    assert (dataset["state"], dataset["row_count"]) == ("ready", len(ROWS))


def test_an_import_that_takes_too_much_memory_is_ended(platform: Any) -> None:
    # Less than its interpreter takes.
    platform.settings.preview_memory_bytes = 4 * 1024**2
    made = platform.upload(ROWS)

    platform.finish(in_child=True)

    dataset = platform.get(f"/datasets/{made['id']}")
    assert (dataset["state"], dataset["task"]["cause"]) == ("failed", "memory_limit")


def test_bad_rows_stay_aside_with_their_reason(platform: Any) -> None:
    lines = [json.dumps(row) for row in ROWS]
    lines[3] = '{"prompt": "cut'
    dataset = platform.make("\n".join(lines).encode())

    assert dataset["row_count"] == len(ROWS) - 1
    found = next(each for each in dataset["warnings"] if each["code"] == "rows_in_quarantine")
    assert found["row_count"] == 1
    kept = platform.get(f"/datasets/{dataset['id']}/quarantine")
    assert kept["row_count"] == 1
    assert kept["rows"][0]["line"] == 4


def test_a_file_without_a_readable_row_fails_and_says_why(platform: Any) -> None:
    made = platform.upload(b'{"a": \nnot json\n')
    platform.finish()

    dataset = platform.get(f"/datasets/{made['id']}")
    assert (dataset["state"], dataset["head"]) == ("failed", None)
    assert dataset["task"]["cause"] == "no_row_readable"
    assert "line" in dataset["task"]["reason"]
    assert dataset["task"]["can_retry"]
    assert platform.list_objects() == set()

    again = platform.post(f"/data-tasks/{dataset['task']['id']}/retry", status=200)
    assert again["state"] == "queued"
    assert platform.get(f"/datasets/{made['id']}")["state"] == "creating"
    platform.finish()
    assert platform.get(f"/datasets/{made['id']}")["state"] == "failed"


@pytest.fixture
def folder_of_splits(platform: Any) -> Path:
    """As hubs lay them out."""
    folder: Path = platform.settings.data_root / "mine"
    folder.mkdir()
    for name, rows in (("train-00000", ROWS[:20]), ("train-00001", ROWS[20:25]), ("test-00000", ROWS[25:])):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}-of-00002.parquet")
    return folder


def test_files_called_after_splits_keep_them(platform: Any, folder_of_splits: Path) -> None:
    made = platform.post("/datasets/imports", {"source": {"kind": "path", "path": "mine"}}, 201)
    platform.finish()

    dataset = platform.get(f"/datasets/{made['id']}")
    assert dataset["splits"] == {"train": 25, "test": len(ROWS) - 25}
    rows = platform.get(f"/datasets/{made['id']}/rows", split="test", limit=1)["rows"]
    assert rows == [ROWS[25]]


def test_further_rows_come_behind_those_that_are_there(platform: Any, dataset: dict[str, Any]) -> None:
    more = platform.settings.data_root / "more.jsonl"
    more.write_text('{"prompt": "What is it that you see?", "answer": "5", "hint": "fingers"}\n')
    body = {"source": {"kind": "path", "path": "more.jsonl"}, "mode": "append", "message": "One more"}
    task = platform.post(f"/datasets/{dataset['id']}/imports", body)
    platform.finish()

    assert platform.task(task["id"])["state"] == "succeeded", platform.task(task["id"])
    after = platform.get(f"/datasets/{dataset['id']}")
    assert after["row_count"] == len(ROWS) + 1
    rows = platform.get(f"/datasets/{dataset['id']}/rows", offset=len(ROWS) - 1)["rows"]
    assert [row["answer"] for row in rows] == ["", "5"]
    assert [row["hint"] for row in rows] == [None, "fingers"]
    newest, first = platform.get(f"/datasets/{dataset['id']}/versions")["items"]
    assert (newest["message"], newest["parents"]) == ("One more", [first["id"]])
    # The old version is what it was.
    old = platform.get(f"/datasets/{dataset['id']}/rows", version=first["id"], limit=1)
    assert old["row_count"] == len(ROWS)


def test_rows_that_do_not_fit_the_columns_change_nothing(platform: Any, dataset: dict[str, Any]) -> None:
    more = platform.settings.data_root / "more.jsonl"
    more.write_text('{"prompt": {"text": "nested"}, "answer": ["5"]}\n')
    task = platform.post(
        f"/datasets/{dataset['id']}/imports", {"source": {"kind": "path", "path": "more.jsonl"}}
    )
    platform.finish()

    failed = platform.task(task["id"])
    assert (failed["state"], failed["cause"]) == ("failed", "schemas_differ"), failed
    assert platform.get(f"/datasets/{dataset['id']}")["head"] == dataset["head"]
    assert platform.get(f"/datasets/{dataset['id']}")["state"] == "ready"


def test_an_upload_that_expired_is_told_of(platform: Any) -> None:
    made = platform.upload(ROWS)
    for path in (platform.settings.data_root / "uploads").glob("up_*/data"):
        path.unlink()
    for path in (platform.settings.data_root / "uploads").glob("up_*/upload.json"):
        path.unlink()
    platform.finish()

    task = platform.get(f"/datasets/{made['id']}")["task"]
    assert (task["state"], task["cause"]) == ("failed", "upload_gone")


def test_a_cancelled_import_leaves_no_rows(platform: Any) -> None:
    made = platform.upload(ROWS)
    cancelled = platform.post(f"/data-tasks/{made['task']['id']}/cancel", status=200)
    assert cancelled["state"] == "cancelled"
    assert platform.finish() == []

    assert platform.get(f"/datasets/{made['id']}")["state"] == "failed"
    assert platform.client.post(f"/data-tasks/{made['task']['id']}/cancel").status_code == 409
    platform.post(f"/data-tasks/{made['task']['id']}/retry", status=200)
    platform.finish()
    assert platform.get(f"/datasets/{made['id']}")["state"] == "ready"
