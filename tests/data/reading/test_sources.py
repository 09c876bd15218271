"""Files come from folders, a data root, the hub or a bucket, and from nowhere else."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pytest
from trellis_data.reading.importing import import_rows
from trellis_data.reading.sources import (
    HubSource,
    LocalSource,
    S3Source,
    Source,
    SourceUnavailable,
    source_inside,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = b'{"n": 1}\n{"n": 2}\n'


def numbers(source: Source, folder: Path) -> list[int]:
    report = import_rows(source, folder)
    return [row["n"] for name in report.shards for row in pq.read_table(folder / name).to_pylist()]


@pytest.mark.parametrize(
    "path", ["../secret.jsonl", "/etc/passwd", "a/../../x", "a\\..\\x", "x\x00", "link/x.jsonl"]
)
def test_nothing_outside_of_the_data_root_is_read(path: str, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_bytes(ROWS)
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.jsonl").write_bytes(ROWS)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(SourceUnavailable) as caught:
        source_inside(tmp_path / "root", path)

    assert caught.value.code == "source_outside"


def test_a_link_in_a_folder_does_not_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_bytes(b'{"n": 99}\n')
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.jsonl").write_bytes(ROWS)
    (tmp_path / "root" / "b.jsonl").symlink_to(tmp_path / "secret.jsonl")

    assert numbers(LocalSource(tmp_path / "root"), tmp_path / "out") == [1, 2]


def test_a_file_of_the_data_root_is_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "rows.jsonl").write_bytes(ROWS)

    assert numbers(source_inside(tmp_path, "folder/rows.jsonl"), tmp_path / "out") == [1, 2]


class StandInHub:
    """Serves the dataset ``team/rows`` at one commit that is also called main."""

    def __init__(self, files: dict[str, bytes]) -> None:
        hub = self
        self.files = files
        self.is_gated = False
        #: More of what the hub tells of the dataset.
        self.facts: dict[str, Any] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            do_HEAD = do_GET

            def log_message(self, *_arguments: Any) -> None:
                """Tests are quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(request.path).path)
        if self.is_gated:
            return self.send(request, 403, b"", {"X-Error-Code": "GatedRepo"})
        if not path.startswith(("/api/datasets/team/rows", "/datasets/team/rows/")):
            return self.send(request, 404, b"", {"X-Error-Code": "RepoNotFound"})
        if path.startswith("/api/"):
            revision = path.partition("/revision/")[2] or "main"
            if revision not in ("main", COMMIT):
                return self.send(request, 404, b"", {"X-Error-Code": "RevisionNotFound"})
            siblings = [{"rfilename": name, "size": len(data)} for name, data in self.files.items()]
            info = {"id": "team/rows", "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
            info |= self.facts
            return self.send(request, 200, json.dumps(info).encode(), {"Content-Type": "application/json"})
        data = self.files[path.removeprefix(f"/datasets/team/rows/resolve/{COMMIT}/")]
        return self.send(request, 200, data, {"ETag": f'"{hash(data)}"', "X-Repo-Commit": COMMIT})

    @staticmethod
    def send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(body)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    hub = StandInHub(
        {"README.md": b"#", "data/a.jsonl": ROWS, "data/b.jsonl": b'{"n": 3}\n', "test.csv": b"n\n9\n"}
    )
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.server.server_port}")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


@pytest.mark.parametrize(
    ("facts", "licences"),
    [
        ({}, []),
        ({"cardData": {"license": "cc-by-4.0"}}, ["cc-by-4.0"]),
        ({"cardData": {"license": ["mit", "apache-2.0", "mit"]}}, ["mit", "apache-2.0"]),
        ({"cardData": {"license": "other", "license_name": "llama3"}}, ["llama3"]),
        (
            {"cardData": {"license": "other", "license_name": "Own Community License"}},
            ["Own Community License"],
        ),
        ({"cardData": {"license": "other", "license_name": "two\nlines"}}, ["other"]),
        ({"cardData": {"license": "other"}}, ["other"]),
        ({"tags": ["license:odc-by", "language:en"]}, ["odc-by"]),
        ({"cardData": {"license": "<b>free</b>"}}, []),
    ],
)
def test_the_licence_is_that_of_the_hubs_card(
    hub: StandInHub, facts: dict[str, Any], licences: list[str]
) -> None:
    hub.facts = facts
    source = HubSource("team/rows")

    source.list_files()

    assert list(source.licences) == licences


def test_a_dataset_of_the_hub_is_read_at_one_commit(hub: StandInHub, tmp_path: Path) -> None:
    source = HubSource("team/rows", under="data")

    report = import_rows(source, tmp_path / "out")

    assert report.revision == COMMIT
    assert [(file.name, file.rows) for file in report.files] == [("data/a.jsonl", 2), ("data/b.jsonl", 1)]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "import.json",
        "part-00000.parquet",
        "quarantine.jsonl",
    }


@pytest.mark.parametrize(
    ("repo_id", "revision", "is_gated", "code"),
    [
        ("team/other", "main", False, "hub_no_dataset"),
        ("team/rows", "nowhere", False, "hub_no_revision"),
        ("team/rows", "main", True, "hub_gated"),
        ("../../etc", "main", False, "hub_bad_name"),
    ],
)
def test_what_the_hub_refuses_is_said_in_one_sentence(
    repo_id: str, revision: str, is_gated: bool, code: str, hub: StandInHub, tmp_path: Path
) -> None:
    hub.is_gated = is_gated

    with pytest.raises(SourceUnavailable) as caught:
        import_rows(HubSource(repo_id, revision=revision), tmp_path / "out")

    assert caught.value.code == code
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The options of a bucket ``data`` with some objects, on a server of its own."""
    import boto3
    from moto.server import ThreadedMotoServer

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of-the-test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    address, port = server.get_host_and_port()
    endpoint = f"http://{address}:{port}"
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="data")
    client.put_object(Bucket="data", Key="chat/a.jsonl", Body=ROWS)
    client.put_object(Bucket="data", Key="chat/deep/b.jsonl", Body=b'{"n": 3}\n')
    client.put_object(Bucket="data", Key="chat/notes.txt", Body=b"nothing")
    yield {"endpoint_url": endpoint}
    server.stop()


@pytest.mark.parametrize(
    ("url", "expected"),
    [("s3://data/chat", [1, 2, 3]), ("s3://data/chat/a.jsonl", [1, 2]), ("s3://data", [1, 2, 3])],
)
def test_objects_of_a_bucket_are_read(
    url: str, expected: list[int], bucket: dict[str, Any], tmp_path: Path
) -> None:
    assert numbers(S3Source(url, options=bucket), tmp_path / "out") == expected


@pytest.mark.parametrize("url", ["s3://data/nowhere", "s3://other/chat"])
def test_a_bucket_without_the_object_says_so(url: str, bucket: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        import_rows(S3Source(url, options=bucket), tmp_path / "out")

    assert caught.value.code == "source_missing"


@pytest.mark.parametrize("url", ["http://host/x", "s3://", "file:///etc/passwd"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(SourceUnavailable, match="not a URL like"):
        S3Source(url)


@pytest.mark.parametrize(
    ("card", "licences"),
    [
        ("---\nlicense: cc-by-4.0\n---\n# Rows", ["cc-by-4.0"]),
        ('---\nlicense: other\nlicense_name: "llama3"\n---\n', ["llama3"]),
        ("license: mit", []),
        ("---\nlicense: [x\n---\n", []),
        (None, []),
    ],
)
def test_the_licence_of_a_folder_is_that_of_its_card(
    tmp_path: Path, card: str | None, licences: list[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    source = LocalSource(tmp_path)

    assert [file.name for file in source.list_files()] == ["rows.jsonl"]
    assert list(source.licences) == licences
