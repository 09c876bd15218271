"""What is imported, and from where: uploads, folders under the data root, further rows."""

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from trellis_api.core.settings import Settings
from trellis_api.uploads import receiving
from trellis_api.uploads.running_hashes import RunningHashes
from trellis_testing.uploads import DATASETS, LINES, ROWS, Finish, Upload, as_lines, rows_of

GOOD = b'{"question": "1+1", "answer": "2"}\n'


def quarantine_of(client: TestClient, dataset: dict[str, Any], **params: Any) -> dict[str, Any]:
    answer = client.get(f"{DATASETS}/{dataset['id']}/quarantine", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def put(settings: Settings, path: str, content: bytes = LINES) -> Path:
    place = settings.data_root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def import_path(client: TestClient, path: str, **more: Any) -> Any:
    return client.post(f"{DATASETS}/imports", json={"source": {"kind": "path", "path": path}, **more})


# -- bad rows and bad files


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"question": "1+1", "answer": }', "not_json"),
        (b'["a list"]', "not_an_object"),
        (b'{"question": "q", "answer": "\\ud800"}', None),
        (b'{"question": "q", "answer": "a", "": 1}', None),
        (b'{"question": "q", "answer": "a", "k\\u0000": 1}', None),
        (b'{"question": ["q"], "answer": "a"}', None),
        (b'{"question": "q", "answer": "a", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}", None),
        (b'{"question": "q", "answer": NaN}', None),
        (b"\x00\x00\x00", None),
    ],
)
def test_a_bad_row_goes_to_quarantine_and_the_others_are_taken(
    client: TestClient, upload: Upload, line: bytes, code: str | None
) -> None:
    dataset = upload(GOOD * 2 + line + b"\n" + GOOD)

    assert (dataset["state"], dataset["row_count"]) == ("ready", 3)
    assert [each["code"] for each in dataset["warnings"]] == ["rows_in_quarantine"]
    found = quarantine_of(client, dataset)
    assert found["row_count"] == sum(found["reasons"].values()) == 1
    row = found["rows"][0]
    assert (row["source"], row["line"], row["row"]) == ("sums.jsonl", 3, 3)
    assert row["reason"]
    assert code is None or row["code"] == code


def test_duplicate_keys_are_named(client: TestClient, upload: Upload) -> None:
    dataset = upload(GOOD + b'{"question": "a", "question": "b", "answer": "c"}\n' + GOOD)

    found = quarantine_of(client, dataset)
    assert dataset["row_count"] + found["row_count"] == 3


def test_quarantine_is_paged_and_downloaded(client: TestClient, upload: Upload) -> None:
    bad = b"".join(b'{"question": %d\n' % number for number in range(25))
    dataset = upload(GOOD + bad, name="数学 sums")

    page = quarantine_of(client, dataset, offset=20, limit=10)
    behind = quarantine_of(client, dataset, offset=2**62)
    file = client.get(f"{DATASETS}/{dataset['id']}/quarantine/download")

    assert (page["row_count"], len(page["rows"]), page["rows"][0]["line"]) == (25, 5, 22)
    assert (behind["row_count"], behind["rows"]) == (25, [])
    assert len([json.loads(line) for line in file.content.splitlines()]) == 25
    assert (
        "filename*=UTF-8''%E6%95%B0%E5%AD%A6%20sums-quarantine.jsonl" in file.headers["Content-Disposition"]
    )


def test_an_import_that_took_all_has_no_quarantine(client: TestClient, upload: Upload) -> None:
    dataset = upload()
    place = f"{DATASETS}/{dataset['id']}/quarantine"

    assert quarantine_of(client, dataset)["row_count"] == 0
    assert client.get(f"{place}/download").json()["error"] == "quarantine_not_found"
    assert client.get(place, params={"task": "dtk_aaaaaaaaaaaa"}).json()["error"] == "quarantine_not_found"
    assert client.get(place, params={"task": "../../admin"}).json()["error"] == "quarantine_not_found"


@pytest.mark.parametrize(
    ("content", "filename", "cause"),
    [
        (b"", "rows.jsonl", "dataset_empty"),
        (b"   \n\n", "rows.jsonl", "dataset_empty"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 100, "rows.jsonl", "not_text"),
        (b"PAR1" + b"junk" * 50, "rows.parquet", "file_damaged"),
        (b"no json at all", "rows.jsonl", None),
        (b"{}\n{}\n", "rows.jsonl", "dataset_empty"),
        (b"just text", "rows.txt", "unsupported_file_type"),
    ],
)
def test_a_file_without_rows_fails_with_a_reason(
    client: TestClient, upload: Upload, content: bytes, filename: str, cause: str | None
) -> None:
    dataset = upload(content, filename)

    assert (dataset["state"], dataset["row_count"], dataset["head"]) == ("failed", 0, None)
    assert (dataset["task"]["state"], dataset["task"]["can_retry"]) == ("failed", True)
    assert dataset["task"]["reason"]
    assert cause is None or dataset["task"]["cause"] == cause
    assert client.get(f"{DATASETS}/{dataset['id']}/rows").json()["error"] == "dataset_not_ready"


def test_the_rows_before_the_damage_of_an_archive_are_taken(client: TestClient, upload: Upload) -> None:
    whole = gzip.compress(as_lines([{"question": f"{n}", "answer": str(hash(n))} for n in range(20_000)]))

    dataset = upload(whole[: len(whole) // 2], "rows.jsonl.gz")

    assert dataset["state"] == "ready"
    assert 0 < dataset["row_count"] < 20_000
    assert dataset["warnings"] != []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "big5", "utf-16"])
def test_chinese_text_is_read_in_every_encoding(client: TestClient, upload: Upload, encoding: str) -> None:
    rows = [
        {"question": f"小明有{n}個蘋果，又買了三個，一共有多少？", "answer": str(n + 3)} for n in range(40)
    ]
    if encoding == "gb18030":
        rows = [{**row, "question": "简体中文的问题，一共有多少？" + row["answer"]} for row in rows]

    dataset = upload(as_lines(rows).decode().encode(encoding), "rows.jsonl")

    assert rows_of(client, dataset) == rows


def test_bytes_of_another_encoding_in_the_middle_are_named(client: TestClient, upload: Upload) -> None:
    good = as_lines([{"question": "一加一等于几？", "answer": "二"}] * 20)
    foreign = '{"question": "一加一等于几？", "answer": "二"}'.encode("gb18030")

    dataset = upload(good + b"\n" + foreign + b"\n" + good)

    found = quarantine_of(client, dataset)
    assert dataset["row_count"] == 40
    assert [row["line"] for row in found["rows"]] == [21]


def test_a_csv_file_and_a_parquet_file_are_read(client: TestClient, upload: Upload) -> None:
    text = 'question,answer\r\n"a, ""b""\nc",1\r\n数学,2\r\n'
    table = pa.table(
        {"question": ["a", None], "answer": [1, 2], "when": pa.array([0, 1], pa.timestamp("us"))}
    )
    file = io.BytesIO()
    pq.write_table(table, file)

    of_csv = upload(text.encode(), "sums.csv")
    of_parquet = upload(file.getvalue(), "more.parquet")

    assert [row["question"] for row in rows_of(client, of_csv)] == ['a, "b"\nc', "数学"]
    assert rows_of(client, of_parquet)[1]["question"] is None
    assert rows_of(client, of_parquet)[0]["when"].startswith("1970-01-01T00:00:00")


def test_a_failed_import_is_retried(
    client: TestClient, upload: Upload, finish: Finish, settings: Settings
) -> None:
    dataset = upload(b"no rows".ljust(len(LINES)), "sums.jsonl")
    (folder,) = (settings.data_root / "uploads").iterdir()
    (folder / "data").write_bytes(LINES)

    answer = client.post(f"/api/v1/data-tasks/{dataset['task']['id']}/retry")
    creating = client.get(f"{DATASETS}/{dataset['id']}").json()
    finish()

    assert answer.status_code == 200
    assert creating["state"] == "creating"
    assert rows_of(client, dataset) == ROWS


# -- paths, hubs and S3


def test_a_file_under_the_data_root_is_imported(
    client: TestClient, settings: Settings, finish: Finish
) -> None:
    put(settings, "corpora/maths/sums.jsonl")

    answer = import_path(client, "corpora/maths/sums.jsonl", description="by path")
    finish()

    assert answer.status_code == 201
    dataset = client.get(f"{DATASETS}/{answer.json()['id']}").json()
    assert (dataset["name"], dataset["description"], dataset["state"]) == ("sums", "by path", "ready")
    assert dataset["source"]["kind"] == "path"
    assert dataset["source"]["size_bytes"] == len(LINES)
    assert rows_of(client, dataset) == ROWS


def test_a_folder_keeps_its_splits(client: TestClient, settings: Settings, finish: Finish) -> None:
    put(settings, "corpora/maths/train.jsonl")
    put(settings, "corpora/maths/test.jsonl", as_lines(ROWS[:2]))
    put(settings, "corpora/maths/README.md", b"# not rows")

    made = import_path(client, "corpora/maths").json()
    finish()

    dataset = client.get(f"{DATASETS}/{made['id']}").json()
    assert (dataset["name"], dataset["splits"]) == ("maths", {"test": 2, "train": 5})
    assert rows_of(client, dataset, split="test") == ROWS[:2]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../outside.jsonl", "source_outside"),
        ("corpora/../../outside.jsonl", "source_outside"),
        ("/etc/passwd", "source_outside"),
        ("corpora\\..\\..\\x.jsonl", "source_outside"),
        ("link.jsonl", "source_outside"),
        (".", "source_private"),
        ("run", "source_private"),
        ("run/services.json", "source_private"),
        ("jobs/job_a/attempt-1/spec.json", "source_private"),
        ("uploads", "source_private"),
        ("versions", "source_private"),
        ("redis/redis.conf", "source_private"),
        (".hidden/rows.jsonl", "source_private"),
        ("corpora/.rows.jsonl", "source_private"),
        ("inner-link.json", "source_private"),
        ("admin.token", "source_no_rows"),
        ("trellis.db", "source_no_rows"),
        ("corpora", "source_no_rows"),
        ("nowhere.jsonl", "source_missing"),
    ],
)
def test_a_path_leads_to_rows_that_people_put_there(
    client: TestClient, settings: Settings, path: str, code: str
) -> None:
    for each in (
        "run/services.json",
        "jobs/job_a/attempt-1/spec.json",
        "uploads/x.jsonl",
        "redis/redis.conf",
    ):
        put(settings, each, b"{}")
    for each in (".hidden/rows.jsonl", "corpora/.rows.jsonl", "trellis.db", "versions/x.json"):
        put(settings, each, b"{}")
    outside = settings.data_root.parent / "outside.jsonl"
    outside.write_bytes(LINES)
    (settings.data_root / "link.jsonl").symlink_to(outside)
    (settings.data_root / "inner-link.json").symlink_to(settings.data_root / "run" / "services.json")

    answer = import_path(client, path)

    assert (answer.status_code, answer.json()["error"]) == (422, "source_unfit")
    assert [(each["code"], each["field"]) for each in answer.json()["details"]] == [(code, "source.path")]
    assert client.get(DATASETS).json()["items"] == []


def test_hubs_and_buckets_are_tasks_for_workers(client: TestClient) -> None:
    hub = client.post(
        f"{DATASETS}/imports", json={"source": {"kind": "hub", "repo_id": "team/maths", "revision": "v1"}}
    ).json()
    bucket = client.post(
        f"{DATASETS}/imports",
        json={"source": {"kind": "s3", "url": "s3://corpora/maths/sums.jsonl.gz"}, "mixed": "text"},
    ).json()

    assert (hub["name"], hub["source"]["revision"]) == ("maths", "v1")
    source = {"kind": "hub", "hub": "modelscope", "repo_id": "team/counts"}
    other = client.post(f"{DATASETS}/imports", json={"source": source}).json()
    assert (other["name"], other["source"]["name"]) == ("counts", "modelscope:team/counts")
    assert other["source"]["revision"] == "master"
    assert (bucket["name"], bucket["source"]["name"]) == ("sums", "s3://corpora/maths/sums.jsonl.gz")


@pytest.mark.parametrize(
    ("source", "status", "error"),
    [
        ({"kind": "upload", "upload": "up_aaaaaaaaaaaa"}, 404, "upload_not_found"),
        ({"kind": "upload", "upload": "../../admin.token"}, 404, "upload_not_found"),
        ({"kind": "path", "path": ""}, 422, "invalid_request"),
        ({"kind": "path", "path": "a\x00b"}, 422, "source_unfit"),
        ({"kind": "hub", "repo_id": "../../x"}, 422, "invalid_request"),
        ({"kind": "s3", "url": "http://x/y"}, 422, "invalid_request"),
        ({"kind": "web", "url": "http://x/y"}, 422, "invalid_request"),
    ],
)
def test_a_source_that_cannot_be_is_refused(
    client: TestClient, source: dict[str, str], status: int, error: str
) -> None:
    answer = client.post(f"{DATASETS}/imports", json={"source": source})

    assert (answer.status_code, answer.json()["error"]) == (status, error)


@pytest.mark.parametrize(
    "address",
    [
        "s3://key:pass-word@corpora/maths",
        "s3://key@corpora/maths",
        "s3://key:pass/word@corpora/maths",
        "s3://corpora/AKIAABCDEFGHIJKLMNOP/maths",
    ],
)
def test_an_address_with_credentials_is_refused_and_not_repeated(
    client: TestClient, upload: Upload, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    caplog.set_level("DEBUG")
    dataset = upload()

    for place in ("imports", f"{dataset['id']}/imports"):
        answer = client.post(f"{DATASETS}/{place}", json={"source": {"kind": "s3", "url": address}})
        assert (answer.status_code, answer.json()["error"]) == (422, "source_unfit")
        assert [(each["code"], each["field"]) for each in answer.json()["details"]] == [
            ("source_with_credentials", "source.url")
        ]
        assert address not in answer.text
    assert address not in caplog.text
    assert len(client.get("/api/v1/data-tasks").json()["items"]) == 1


def test_an_access_point_is_an_address_like_others(client: TestClient) -> None:
    url = "s3://arn:aws:s3:us-west-2:123456789012:accesspoint/maths/sums.jsonl"

    assert client.post(f"{DATASETS}/imports", json={"source": {"kind": "s3", "url": url}}).status_code == 201


def test_an_upload_that_is_not_complete_is_refused(client: TestClient) -> None:
    headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "10"}
    upload = client.post("/api/v1/uploads", headers=headers).headers["Location"].rpartition("/")[2]

    answer = client.post(f"{DATASETS}/imports", json={"source": {"kind": "upload", "upload": upload}})

    assert (answer.status_code, answer.json()["error"]) == (409, "upload_incomplete")


def send_in_pieces(client: TestClient, content: bytes, sha256: str, between: Callable[[], None]) -> str:
    """An upload in two pieces; its id."""
    told = ",".join(
        f"{key} {base64.b64encode(value.encode()).decode()}"
        for key, value in (("filename", "sums.jsonl"), ("sha256", sha256))
    )
    headers = {"Tus-Resumable": "1.0.0", "Upload-Length": str(len(content)), "Upload-Metadata": told}
    place = client.post("/api/v1/uploads", headers=headers).headers["Location"]
    for start, end in ((0, 10), (10, len(content))):
        headers = {
            "Tus-Resumable": "1.0.0",
            "Upload-Offset": str(start),
            "Content-Type": "application/offset+octet-stream",
        }
        assert client.patch(place, content=content[start:end], headers=headers).status_code == 204
        between()
    return str(place.rpartition("/")[2])


@pytest.mark.parametrize("is_right", [True, False])
def test_a_file_whose_hash_was_lost_is_compared_before_its_rows_are_read(
    client: TestClient, finish: Finish, monkeypatch: pytest.MonkeyPatch, is_right: bool
) -> None:
    wanted = hashlib.sha256(LINES if is_right else b"another file").hexdigest()

    def restart() -> None:
        monkeypatch.setattr(receiving, "_HASHES", RunningHashes())

    upload = send_in_pieces(client, LINES, wanted, between=restart)
    made = client.post(f"{DATASETS}/imports", json={"source": {"kind": "upload", "upload": upload}})
    finish()

    assert made.status_code == 201
    dataset = client.get(f"{DATASETS}/{made.json()['id']}").json()
    if is_right:
        (file,) = client.get(f"{DATASETS}/{dataset['id']}/versions/main").json()["provenance"]["files"]
        assert (dataset["state"], file["sha256"]) == ("ready", wanted)
    else:
        assert (dataset["state"], dataset["task"]["cause"]) == ("failed", "upload_checksum_mismatch")


# -- more rows


def test_more_rows_come_behind_or_instead(
    client: TestClient, upload: Upload, settings: Settings, finish: Finish
) -> None:
    dataset = upload()
    put(settings, "more.jsonl", as_lines([{"question": "9+9=?", "answer": "18"}]))
    place, source = f"{DATASETS}/{dataset['id']}/imports", {"kind": "path", "path": "more.jsonl"}

    task = client.post(place, json={"source": source, "message": "one more"})
    finish()
    appended = client.get(f"{DATASETS}/{dataset['id']}").json()
    client.post(place, json={"source": source, "mode": "replace"})
    finish()
    replaced = client.get(f"{DATASETS}/{dataset['id']}").json()

    assert (task.status_code, task.json()["kind"], task.json()["version"]) == (202, "import", dataset["head"])
    assert (appended["row_count"], replaced["row_count"]) == (6, 1)
    assert appended["format"] == "prompt-answer"
    assert rows_of(client, dataset, version=appended["head"], offset=4)[1]["answer"] == "18"
    assert rows_of(client, dataset, version=dataset["head"][:10]) == ROWS


def test_more_rows_for_what_is_not_there(client: TestClient, upload: Upload, settings: Settings) -> None:
    put(settings, "more.jsonl")
    body = {"source": {"kind": "path", "path": "more.jsonl"}}
    dataset = upload()

    no_branch = client.post(f"{DATASETS}/{dataset['id']}/imports", json={**body, "branch": "other"})
    no_dataset = client.post(f"{DATASETS}/ds_aaaaaaaaaaaa/imports", json=body)
    creating = import_path(client, "more.jsonl").json()
    too_early = client.post(f"{DATASETS}/{creating['id']}/imports", json=body)

    assert no_branch.json()["error"] == "version_not_found"
    assert no_dataset.json()["error"] == "dataset_not_found"
    assert (too_early.status_code, too_early.json()["error"]) == (409, "dataset_not_ready")


def test_a_dataset_that_failed_gets_its_rows_from_elsewhere(
    client: TestClient, upload: Upload, settings: Settings, finish: Finish
) -> None:
    failed = upload(b"no rows")
    put(settings, "right.jsonl")

    body = {"source": {"kind": "path", "path": "right.jsonl"}}
    task = client.post(f"{DATASETS}/{failed['id']}/imports", json=body)
    creating = client.get(f"{DATASETS}/{failed['id']}").json()
    finish()

    ready = client.get(f"{DATASETS}/{failed['id']}").json()
    assert (task.status_code, creating["state"], ready["state"]) == (202, "creating", "ready")
    assert (ready["source"]["name"], ready["row_count"]) == ("right.jsonl", 5)
