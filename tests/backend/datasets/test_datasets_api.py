"""Datasets over HTTP: upload in one request, list, rename, delete."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets import repository, service
from trellis_api.rewards.models import DryRun
from trellis_contracts.states import JobState
from trellis_testing.uploads import DATASETS, LINES, ROWS, Finish, Upload, rows_of

BENCHMARKS = Path(os.environ.get("TRELLIS_BENCHMARK_DIR", Path(__file__).parents[4] / "shared" / "data"))


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_becomes_a_dataset_with_its_facts(client: TestClient, finish: Finish) -> None:
    made = client.post(
        DATASETS, files={"file": ("sums.jsonl", LINES)}, data={"name": "sums", "description": "small sums"}
    ).json()

    assert (made["state"], made["row_count"], made["head"], made["format"]) == ("creating", 0, None, None)
    assert (made["task"]["kind"], made["task"]["state"]) == ("import", "queued")
    assert made["source"] == {
        "kind": "upload",
        "name": "sums.jsonl",
        "size_bytes": len(LINES),
        "sha256": hashlib.sha256(LINES).hexdigest(),
        "revision": None,
        "dataset": None,
        "version": None,
    }
    finish()
    dataset = client.get(f"{DATASETS}/{made['id']}").json()
    assert (dataset["state"], dataset["task"]) == ("ready", None)
    assert (dataset["name"], dataset["description"]) == ("sums", "small sums")
    assert dataset["format"] == "prompt-answer"
    assert dataset["format_columns"] == {"prompt": "question", "answer": "answer"}
    assert (dataset["row_count"], dataset["splits"]) == (5, {"train": 5})
    assert dataset["columns"] == [{"name": "question", "type": "text"}, {"name": "answer", "type": "text"}]
    assert client.get(DATASETS).json()["items"] == [dataset]


def test_an_upload_goes_when_its_rows_are_in_the_store(
    client: TestClient, upload: Upload, settings: Settings
) -> None:
    upload()

    assert list((settings.data_root / "uploads").iterdir()) == []


def test_a_refused_form_leaves_nothing(client: TestClient, settings: Settings) -> None:
    client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data={"name": "x" * 121})

    assert list((settings.data_root / "uploads").iterdir()) == []
    assert client.get(DATASETS).json()["items"] == []


def test_a_name_can_be_used_once(client: TestClient, settings: Settings) -> None:
    client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data={"name": "sums"})

    answer = client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data={"name": " sums "})

    assert (answer.status_code, answer.json()["error"]) == (409, "dataset_name_taken")
    assert len(list((settings.data_root / "uploads").iterdir())) == 1


def test_a_name_that_nobody_chose_is_numbered(client: TestClient) -> None:
    names = [client.post(DATASETS, files={"file": ("sums.jsonl.gz", LINES)}).json()["name"] for _ in range(3)]

    assert names == ["sums", "sums (2)", "sums (3)"]


def test_a_name_that_is_taken_at_this_very_moment_is_taken(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data={"name": "sums"})
    monkeypatch.setattr(repository, "find_dataset_named", lambda _session, name: None)

    answer = client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data={"name": "sums"})

    assert (answer.status_code, answer.json()["error"]) == (409, "dataset_name_taken")


@pytest.mark.parametrize(
    "filename", ["../../etc/passwd.jsonl", "..\\..\\x.jsonl", "/abs/path.jsonl", "a\nb.jsonl", "数据.jsonl"]
)
def test_a_file_name_never_becomes_a_path(
    client: TestClient, upload: Upload, settings: Settings, filename: str
) -> None:
    dataset = upload(filename=filename, name="any")

    assert not set(dataset["source"]["name"]) & {"/", "\\", "\n"}
    assert [path for path in files_under(settings.data_root.parent) if "etc" in path.parts] == []
    assert rows_of(client, dataset) == ROWS


def test_an_upload_above_the_limit_is_refused(client: TestClient, settings: Settings) -> None:
    settings.max_upload_bytes = len(LINES)
    fits = client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data={"name": "just fits"})

    answer = client.post(DATASETS, files={"file": ("big.jsonl", LINES + b"\n")})

    assert fits.status_code == 201
    assert (answer.status_code, answer.json()["error"]) == (413, "upload_too_large")
    assert answer.json()["details"] == {"limit_bytes": len(LINES)}
    assert len(list((settings.data_root / "uploads").iterdir())) == 1


def test_the_limit_holds_without_an_announced_size(client: TestClient, settings: Settings) -> None:
    settings.max_upload_bytes = 1000

    def body() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="x.jsonl"\r\n\r\n'
        for _ in range(100):
            yield b"x" * 1000
        yield b"\r\n--b--\r\n"

    answer = client.post(
        DATASETS, content=body(), headers={"Content-Type": "multipart/form-data; boundary=b"}
    )

    assert answer.status_code == 413


def test_an_upload_that_would_fill_the_disk_is_refused(client: TestClient, settings: Settings) -> None:
    settings.min_free_disk_bytes = 2**62

    answer = client.post(DATASETS, files={"file": ("x.jsonl", LINES)})

    assert (answer.status_code, answer.json()["error"]) == (507, "disk_full")


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
def test_a_malformed_form_is_refused(
    client: TestClient, settings: Settings, body: bytes, content_type: str
) -> None:
    answer = client.post(DATASETS, content=body, headers={"Content-Type": content_type})

    assert (answer.status_code, answer.json()["error"]) == (422, "upload_malformed")
    assert files_under(settings.data_root / "uploads") == []


@pytest.mark.parametrize("fields", [{"name": "x" * 121}, {"name": "a\x00b"}, {"description": "x" * 2001}])
def test_names_and_descriptions_have_limits(client: TestClient, fields: dict[str, str]) -> None:
    answer = client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data=fields)

    assert (answer.status_code, answer.json()["error"]) == (422, "upload_malformed")


def test_the_list_is_paged_newest_first_and_filtered_by_text(client: TestClient) -> None:
    names = []
    for number in range(5):
        fields = {"name": f"set {number}", "description": "Chinese maths" if number == 1 else ""}
        names.append(client.post(DATASETS, files={"file": ("x.jsonl", LINES)}, data=fields).json()["name"])

    first = client.get(DATASETS, params={"limit": 3}).json()
    second = client.get(DATASETS, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    by_text = client.get(DATASETS, params={"text": "MATHS"}).json()

    assert [item["name"] for item in first["items"] + second["items"]] == names[::-1]
    assert {item["task"]["state"] for item in first["items"]} == {"queued"}
    assert second["next_cursor"] is None
    assert [item["name"] for item in by_text["items"]] == ["set 1"]
    assert client.get(DATASETS, params={"text": "%"}).json()["items"] == []


def test_a_cursor_made_elsewhere_is_refused(client: TestClient) -> None:
    answer = client.get(DATASETS, params={"cursor": "WzEsIDJd"})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_cursor")


def test_a_dataset_is_renamed_and_described(client: TestClient, upload: Upload) -> None:
    dataset, other = upload(name="sums"), upload(name="other")
    place = f"{DATASETS}/{dataset['id']}"

    renamed = client.patch(place, json={"name": "Sums 2", "description": "数学"}).json()
    taken = client.patch(place, json={"name": other["name"]})
    nothing = client.patch(place, json={}).json()

    assert (renamed["name"], renamed["description"], renamed["row_count"]) == ("Sums 2", "数学", 5)
    assert renamed["updated_at"] > dataset["updated_at"]
    assert (taken.status_code, taken.json()["error"]) == (409, "dataset_name_taken")
    assert (nothing["name"], nothing["description"]) == ("Sums 2", "数学")
    assert client.patch(place, json={"row_count": 7}).status_code == 422
    assert client.patch(place, json={"name": " "}).status_code == 422


def test_a_deleted_dataset_takes_versions_tasks_and_files_along(
    client: TestClient, upload: Upload, settings: Settings
) -> None:
    dataset = upload(LINES + b"\nno row")
    other = upload(name="other")
    assert files_under(settings.data_root / "datasets") != []

    assert client.delete(f"{DATASETS}/{dataset['id']}").status_code == 204

    assert client.get(f"{DATASETS}/{dataset['id']}").json()["error"] == "dataset_not_found"
    assert client.get(f"{DATASETS}/{dataset['id']}/rows").status_code == 404
    assert files_under(settings.data_root / "datasets") == []
    assert [item["dataset"] for item in client.get("/api/v1/data-tasks").json()["items"]] == [other["id"]]
    assert rows_of(client, other) == ROWS


@pytest.mark.parametrize("column", ["dataset_id", "validation_dataset_id"])
@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, JobState.STOPPING])
def test_a_dataset_of_an_unfinished_job_is_not_deleted(
    client: TestClient, upload: Upload, make_job: Callable[..., str], column: str, state: JobState
) -> None:
    dataset = upload()
    make_job(name="reader", state=state, **{column: dataset["id"]})

    answer = client.delete(f"{DATASETS}/{dataset['id']}")

    assert (answer.status_code, answer.json()["error"]) == (409, "dataset_in_use")
    assert answer.json()["details"] == {"jobs": ["reader"], "dry_runs": [], "tasks": []}
    assert rows_of(client, dataset) == ROWS


def test_a_dataset_of_finished_jobs_can_be_deleted(
    client: TestClient, upload: Upload, make_job: Callable[..., str]
) -> None:
    dataset = upload()
    make_job(state=JobState.SUCCEEDED, dataset_id=dataset["id"])

    assert client.delete(f"{DATASETS}/{dataset['id']}").status_code == 204


def test_a_dataset_of_an_unfinished_dry_run_or_task_is_not_deleted(
    client: TestClient, upload: Upload, database: Database, finish: Finish
) -> None:
    dataset = upload()
    with database.write() as session:
        session.add(
            DryRun(
                id="dry_aaaaaaaaaaaa", rewards=[], dataset_id=dataset["id"], columns={}, row_count=1, seed=0
            )
        )
    task = client.post(f"{DATASETS}/{dataset['id']}/statistics", json={}).json()

    answer = client.delete(f"{DATASETS}/{dataset['id']}")

    assert answer.status_code == 409
    assert answer.json()["details"] == {
        "jobs": [],
        "dry_runs": ["dry_aaaaaaaaaaaa"],
        "tasks": [f"statistics {task['id']}"],
    }
    finish()
    with database.write() as session:
        session.delete(session.get_one(DryRun, "dry_aaaaaaaaaaaa"))
    assert client.delete(f"{DATASETS}/{dataset['id']}").status_code == 204


def test_files_stay_when_the_deletion_is_not_committed(
    client: TestClient, upload: Upload, settings: Settings, database: Database
) -> None:
    dataset = upload(LINES + b"\nno row")

    def delete_and_fail() -> None:
        with database.write() as session:
            service.delete(session, settings, dataset_id=dataset["id"])
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        delete_and_fail()

    assert rows_of(client, dataset) == ROWS
    assert client.get(f"{DATASETS}/{dataset['id']}/quarantine").json()["row_count"] == 1


def test_lost_rows_are_an_error_that_says_so(client: TestClient, upload: Upload, settings: Settings) -> None:
    dataset = upload()
    for path in (settings.data_root / "versions" / "objects").rglob("*.parquet"):
        path.unlink()

    answer = client.get(f"{DATASETS}/{dataset['id']}/rows")

    assert (answer.status_code, answer.json()["error"]) == (500, "dataset_file_missing")


def test_uploading_needs_a_login_before_anything_is_received(
    anonymous: TestClient, settings: Settings
) -> None:
    answer = anonymous.post(DATASETS, files={"file": ("x.jsonl", LINES)})

    assert answer.status_code == 401
    assert not (settings.data_root / "uploads").exists()


def test_gsm8k_is_recognised_as_prompt_and_answer(client: TestClient, upload: Upload) -> None:
    source = BENCHMARKS / "gsm8k" / "train.jsonl"
    if not source.is_file():
        pytest.skip(f"{source} is not there")

    dataset = upload(source.read_bytes(), "train.jsonl", name="GSM8K")

    assert dataset["format"] == "prompt-answer"
    assert dataset["format_columns"] == {"prompt": "question", "answer": "answer"}
    assert dataset["row_count"] == 7473
    last = rows_of(client, dataset, offset=7472)
    assert last == [json.loads(source.read_bytes().splitlines()[-1])]
