"""Rows as files, and datasets that are made of them over HTTP."""

import json
from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

DATASETS = "/api/v1/datasets"
ROWS = [{"question": f"{n}+1=?", "answer": str(n + 1)} for n in range(5)]

#: Uploads a file and waits for its rows; gives the dataset as it is then.
Upload = Callable[..., dict[str, Any]]
#: Carries out everything that waits; gives the ids of the tasks.
Finish = Callable[[], list[str]]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    """Encode rows as JSON lines."""
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


LINES = as_lines(ROWS)


def upload_file(
    client: TestClient, finish: Finish, content: bytes = LINES, filename: str = "sums.jsonl", **fields: str
) -> dict[str, Any]:
    """Upload a file in one request and wait for its rows."""
    answer = client.post(DATASETS, files={"file": (filename, content)}, data=fields)
    assert answer.status_code == 201, answer.text
    finish()
    body: dict[str, Any] = client.get(f"{DATASETS}/{answer.json()['id']}").json()
    return body


def rows_of(client: TestClient, dataset: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    """Return the first rows of a dataset, or those that ``params`` select."""
    answer = client.get(f"{DATASETS}/{dataset['id']}/rows", params=params)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["rows"]
    return rows
