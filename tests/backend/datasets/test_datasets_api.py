"""Datasets over HTTP: upload, list, preview, delete."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets import service
from trellis_contracts.states import JobState

BENCHMARKS = Path(os.environ.get("TRELLIS_BENCHMARK_DIR", Path(__file__).parents[4] / "shared" / "data"))
ROWS = [{"question": f"{n}+1=?", "answer": str(n + 1)} for n in range(5)]
LINES = "\n".join(json.dumps(row) for row in ROWS).encode()


def upload(
    client: TestClient, content: bytes = LINES, filename: str = "sums.jsonl", **fields: str
) -> dict[str, Any]:
    answer = client.post("/api/v1/datasets", files={"file": (filename, content)}, data=fields)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_an_upload_becomes_a_dataset_with_its_facts(client: TestClient, settings: Settings) -> None:
    dataset = upload(client, name="sums", description="small sums")

    stored = settings.data_root / "datasets" / dataset["id"] / "data.parquet"
    assert dataset["name"] == "sums"
    assert dataset["description"] == "small sums"
    assert dataset["format"] == "prompt-answer"
    assert dataset["format_columns"] == {"prompt": "question", "answer": "answer"}
    assert dataset["row_count"] == 5
    assert dataset["columns"] == [{"name": "question", "type": "text"}, {"name": "answer", "type": "text"}]
    assert dataset["sha256"] == hashlib.sha256(stored.read_bytes()).hexdigest()
    assert dataset["source_sha256"] == hashlib.sha256(LINES).hexdigest()
    assert (dataset["source_kind"], dataset["source_encoding"]) == ("jsonl", "utf-8")
    assert client.get(f"/api/v1/datasets/{dataset['id']}").json() == dataset


def test_nothing_is_left_among_the_uploads(client: TestClient, settings: Settings) -> None:
    upload(client)
    client.post("/api/v1/datasets", files={"file": ("bad.jsonl", b"{")})

    assert list((settings.data_root / "uploads").iterdir()) == []


def test_the_name_defaults_to_that_of_the_file(client: TestClient) -> None:
    assert upload(client, filename="sums.jsonl")["name"] == "sums"


@pytest.mark.parametrize(
    "filename", ["../../etc/passwd.jsonl", "..\\..\\x.jsonl", "/abs/path.jsonl", "a\nb.jsonl", "数据.jsonl"]
)
def test_a_file_name_never_becomes_a_path(client: TestClient, settings: Settings, filename: str) -> None:
    dataset = upload(client, filename=filename, name="any")

    assert "/" not in dataset["source_filename"]
    assert "\\" not in dataset["source_filename"]
    outside = [path for path in files_under(settings.data_root.parent) if "etc" in path.parts]
    assert outside == []
    assert (settings.data_root / "datasets" / dataset["id"] / "data.parquet").is_file()


def test_a_name_can_be_used_once(client: TestClient) -> None:
    upload(client, name="sums")

    answer = client.post("/api/v1/datasets", files={"file": ("x.jsonl", LINES)}, data={"name": " sums "})

    assert answer.status_code == 409
    assert answer.json()["error"] == "dataset_name_taken"


def test_two_uploads_of_one_name_at_once_make_one_dataset(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(client, name="sums")
    monkeypatch.setattr(service, "check_name", lambda _session, _upload: "sums")  # both passed the check

    answer = client.post("/api/v1/datasets", files={"file": ("x.jsonl", LINES)}, data={"name": "sums"})

    assert answer.status_code == 409
    assert len(list((settings.data_root / "datasets").iterdir())) == 1


def test_a_bad_row_is_named_and_no_row_is_taken(client: TestClient, settings: Settings) -> None:
    content = LINES + b'\n{"question": "1+1=?", "answer": 2}\n'

    answer = client.post("/api/v1/datasets", files={"file": ("sums.jsonl", content)})

    assert answer.status_code == 422
    assert answer.json() == {
        "error": "dataset_rows_invalid",
        "message": "No row was taken: line 6, column 'answer': number where earlier rows have text.",
        "details": {
            "problems": [
                {"line": 6, "row": 6, "column": "answer", "reason": "number where earlier rows have text"}
            ],
            "is_complete": True,
        },
    }
    assert client.get("/api/v1/datasets").json()["items"] == []
    assert not (settings.data_root / "datasets").exists()


def test_binary_junk_is_refused_with_a_reason(client: TestClient) -> None:
    answer = client.post("/api/v1/datasets", files={"file": ("junk.jsonl", os.urandom(4096) + b"\x00")})

    assert answer.status_code == 422
    assert answer.json()["error"] == "dataset_file_invalid"
    assert answer.json()["details"]["code"] in {"not_text", "encoding_unknown", "unsupported_file_type"}


def test_an_upload_above_the_limit_is_refused(client: TestClient, settings: Settings) -> None:
    settings.max_upload_bytes = len(LINES)
    upload(client, name="just fits")

    answer = client.post("/api/v1/datasets", files={"file": ("big.jsonl", LINES + b"\n")})

    assert answer.status_code == 413
    assert answer.json()["error"] == "upload_too_large"
    assert answer.json()["details"] == {"limit_bytes": len(LINES)}
    assert list((settings.data_root / "uploads").iterdir()) == []


def test_the_limit_holds_without_an_announced_size(client: TestClient, settings: Settings) -> None:
    settings.max_upload_bytes = 1000
    sent = 0

    def body() -> Iterator[bytes]:
        nonlocal sent
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="x.jsonl"\r\n\r\n'
        for _ in range(100):
            sent += 1000
            yield b"x" * 1000
        yield b"\r\n--b--\r\n"

    answer = client.post(
        "/api/v1/datasets", content=body(), headers={"Content-Type": "multipart/form-data; boundary=b"}
    )

    assert answer.status_code == 413


def test_an_upload_that_would_fill_the_disk_is_refused(client: TestClient, settings: Settings) -> None:
    settings.min_free_disk_bytes = 2**62

    answer = client.post("/api/v1/datasets", files={"file": ("x.jsonl", LINES)})

    assert answer.status_code == 507
    assert answer.json()["error"] == "disk_full"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{}", "application/json"),
        (b"", "multipart/form-data"),
        (b"no form", "multipart/form-data; boundary=b"),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nhal',
            "multipart/form-data; boundary=b",
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nx\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
        ),
        (b"--b\r\nX: y\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b"),
        (
            b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n\xff\xfe\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n' + b"x" * 20_000 + b"\r\n--b--\r\n",
            "multipart/form-data; boundary=b",
        ),
    ],
)
def test_a_malformed_form_is_refused(client: TestClient, body: bytes, content_type: str) -> None:
    answer = client.post("/api/v1/datasets", content=body, headers={"Content-Type": content_type})

    assert answer.status_code == 422
    assert answer.json()["error"] == "upload_malformed"


@pytest.mark.parametrize("fields", [{"name": "x" * 121}, {"name": "a\x00b"}, {"description": "x" * 2001}])
def test_names_and_descriptions_have_limits(client: TestClient, fields: dict[str, str]) -> None:
    answer = client.post("/api/v1/datasets", files={"file": ("x.jsonl", LINES)}, data=fields)

    assert answer.status_code == 422
    assert answer.json()["error"] == "upload_malformed"


def test_a_page_of_rows_is_read(client: TestClient) -> None:
    dataset = upload(client)

    page = client.get(f"/api/v1/datasets/{dataset['id']}/rows", params={"offset": 3, "limit": 10}).json()

    assert page["rows"] == ROWS[3:]
    assert (page["offset"], page["row_count"]) == (3, 5)
    assert page["columns"] == dataset["columns"]


def test_the_list_is_paged_newest_first_and_filtered_by_text(client: TestClient) -> None:
    names = [
        upload(client, name=f"set {n}", description="Chinese maths" if n == 1 else "")["name"]
        for n in range(5)
    ]

    first = client.get("/api/v1/datasets", params={"limit": 3}).json()
    second = client.get("/api/v1/datasets", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    by_text = client.get("/api/v1/datasets", params={"text": "MATHS"}).json()

    assert [item["name"] for item in first["items"] + second["items"]] == names[::-1]
    assert second["next_cursor"] is None
    assert [item["name"] for item in by_text["items"]] == ["set 1"]
    assert client.get("/api/v1/datasets", params={"text": "%"}).json()["items"] == []


def test_a_cursor_made_elsewhere_is_refused(client: TestClient) -> None:
    answer = client.get("/api/v1/datasets", params={"cursor": "WzEsIDJd"})

    assert answer.status_code == 422
    assert answer.json()["error"] == "invalid_cursor"


def test_a_deleted_dataset_takes_its_files_along(client: TestClient, settings: Settings) -> None:
    dataset = upload(client)

    assert client.delete(f"/api/v1/datasets/{dataset['id']}").status_code == 204

    assert client.get(f"/api/v1/datasets/{dataset['id']}").json()["error"] == "dataset_not_found"
    assert files_under(settings.data_root / "datasets") == []


@pytest.mark.parametrize("column", ["dataset_id", "validation_dataset_id"])
@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, JobState.STOPPING])
def test_a_dataset_of_an_unfinished_job_is_not_deleted(
    client: TestClient, settings: Settings, make_job: Callable[..., str], column: str, state: JobState
) -> None:
    dataset = upload(client)
    make_job(name="reader", state=state, **{column: dataset["id"]})

    answer = client.delete(f"/api/v1/datasets/{dataset['id']}")

    assert answer.status_code == 409
    assert answer.json()["error"] == "dataset_in_use"
    assert answer.json()["details"] == {"jobs": ["reader"]}
    assert len(files_under(settings.data_root / "datasets" / dataset["id"])) == 1


def test_a_dataset_of_finished_jobs_can_be_deleted(client: TestClient, make_job: Callable[..., str]) -> None:
    dataset = upload(client)
    make_job(state=JobState.SUCCEEDED, dataset_id=dataset["id"])

    assert client.delete(f"/api/v1/datasets/{dataset['id']}").status_code == 204


def test_files_stay_when_the_deletion_is_not_committed(
    client: TestClient, settings: Settings, database: Database
) -> None:
    dataset = upload(client)

    def delete_and_fail() -> None:
        with database.write() as session:
            service.delete(session, settings, dataset_id=dataset["id"])
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        delete_and_fail()

    assert client.get(f"/api/v1/datasets/{dataset['id']}/rows").status_code == 200


def test_a_lost_file_is_an_error_that_says_so(client: TestClient, settings: Settings) -> None:
    dataset = upload(client)
    (settings.data_root / "datasets" / dataset["id"] / "data.parquet").unlink()

    answer = client.get(f"/api/v1/datasets/{dataset['id']}/rows")

    assert answer.status_code == 500
    assert answer.json()["error"] == "dataset_file_missing"


def test_uploading_needs_a_login_before_anything_is_received(
    anonymous: TestClient, settings: Settings
) -> None:
    answer = anonymous.post("/api/v1/datasets", files={"file": ("x.jsonl", LINES)})

    assert answer.status_code == 401
    assert not (settings.data_root / "uploads").exists()


def test_gsm8k_is_recognised_as_prompt_and_answer(client: TestClient) -> None:
    source = BENCHMARKS / "gsm8k" / "train.jsonl"
    if not source.is_file():
        pytest.skip(f"{source} is not there")

    dataset = upload(client, source.read_bytes(), "train.jsonl", name="GSM8K")

    assert dataset["format"] == "prompt-answer"
    assert dataset["format_columns"] == {"prompt": "question", "answer": "answer"}
    assert dataset["row_count"] == 7473
    last = client.get(f"/api/v1/datasets/{dataset['id']}/rows", params={"offset": 7472}).json()["rows"]
    assert last == [json.loads(source.read_bytes().splitlines()[-1])]
