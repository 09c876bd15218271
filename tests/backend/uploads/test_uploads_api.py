"""Resumable uploads over HTTP, as clients of the tus protocol send them."""

import base64
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.uploads import receiving, running_hashes, service, storage
from trellis_api.uploads.errors import ChecksumMismatch, UploadLocked
from trellis_api.uploads.running_hashes import RunningHashes

API = "/api/v1/uploads"
TUS = {"Tus-Resumable": "1.0.0"}
CONTENT = os.urandom(300_000)


def encode(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def begin(client: TestClient, size: int = len(CONTENT), **metadata: str) -> str:
    told = ",".join(f"{key} {encode(value)}" for key, value in metadata.items())
    answer = client.post(API, headers={**TUS, "Upload-Length": str(size), "Upload-Metadata": told})
    assert answer.status_code == 201, answer.text
    return str(answer.headers["Location"])


def send(client: TestClient, place: str, data: Any, offset: int, **headers: str) -> Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.patch(
        place,
        content=data,
        headers={
            **TUS,
            "Upload-Offset": str(offset),
            "Content-Type": "application/offset+octet-stream",
            **names,
        },
    )


def offset_of(client: TestClient, place: str) -> int:
    return int(client.head(place, headers=TUS).headers["Upload-Offset"])


def checksum(data: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm} {base64.b64encode(hashlib.new(algorithm, data).digest()).decode()}"


def folder_of(settings: Settings, place: str) -> Path:
    return settings.data_root / "uploads" / place.rpartition("/")[2]


def test_what_the_server_speaks_is_told(client: TestClient, settings: Settings) -> None:
    answer = client.options(API)

    assert answer.status_code == 204
    assert answer.headers["Tus-Version"] == "1.0.0"
    assert answer.headers["Tus-Extension"] == "creation,expiration,checksum,termination"
    assert answer.headers["Tus-Max-Size"] == str(settings.max_upload_bytes)
    assert "sha256" in answer.headers["Tus-Checksum-Algorithm"]


def test_a_file_arrives_in_pieces(client: TestClient) -> None:
    place = begin(client, filename="rows.jsonl", sha256=hashlib.sha256(CONTENT).hexdigest())

    first = send(client, place, CONTENT[:100_000], 0)
    second = send(client, place, CONTENT[100_000:], 100_000)

    assert (first.status_code, first.headers["Upload-Offset"]) == (204, "100000")
    assert (second.status_code, second.headers["Upload-Offset"]) == (204, "300000")
    assert second.headers["Upload-Expires"].endswith("GMT")
    upload = client.get(place).json()
    assert upload["is_complete"] is True
    assert upload["filename"] == "rows.jsonl"
    assert upload["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def test_where_to_go_on_is_told(client: TestClient) -> None:
    place = begin(client)
    send(client, place, CONTENT[:70_000], 0)

    answer = client.head(place, headers=TUS)

    assert answer.status_code == 200
    assert (answer.headers["Upload-Offset"], answer.headers["Upload-Length"]) == ("70000", "300000")
    assert answer.headers["Cache-Control"] == "no-store"
    assert client.get(place).json()["is_complete"] is False


def test_a_piece_at_the_wrong_place_is_refused(client: TestClient) -> None:
    place = begin(client)
    send(client, place, CONTENT[:1000], 0)

    for offset in (0, 999, 1001):
        answer = send(client, place, CONTENT[:10], offset)
        assert (answer.status_code, answer.json()["error"]) == (409, "upload_offset_conflict")
        assert answer.json()["details"] == {"offset": 1000}
    assert offset_of(client, place) == 1000


@pytest.mark.parametrize("algorithm", ["sha256", "sha1"])
def test_a_piece_is_compared_with_its_checksum(client: TestClient, algorithm: str) -> None:
    place = begin(client)
    good = send(client, place, CONTENT[:5000], 0, Upload_Checksum=checksum(CONTENT[:5000], algorithm))

    bad = send(client, place, b"x" * 5000, 5000, Upload_Checksum=checksum(CONTENT[:5000], algorithm))

    assert good.status_code == 204
    assert (bad.status_code, bad.json()["error"]) == (460, "upload_checksum_mismatch")
    assert offset_of(client, place) == 5000


@pytest.mark.parametrize(
    ("header", "status"),
    [("md5 abc=", 400), ("", 400), ("sha256 %%%", 422), ("sha256", 460)],
)
def test_a_checksum_has_a_form(client: TestClient, header: str, status: int) -> None:
    place = begin(client)

    assert send(client, place, b"abc", 0, Upload_Checksum=header).status_code == status
    assert offset_of(client, place) == 0


def test_bytes_whose_checksum_nobody_compared_do_not_count(client: TestClient, settings: Settings) -> None:
    place = begin(client)
    send(client, place, CONTENT[:1000], 0)
    folder = folder_of(settings, place)
    # As a process leaves it that is killed in the middle of a piece with a checksum.
    storage.StoredUpload(folder).mark_unchecked(1000)
    with (folder / "data").open("ab") as file:
        file.write(b"never compared")

    assert offset_of(client, place) == 1000
    assert send(client, place, CONTENT[1000:], 1000).status_code == 204
    assert client.get(place).json()["sha256"] == hashlib.sha256(CONTENT).hexdigest()


def test_a_whole_that_is_not_what_was_announced_is_removed(client: TestClient, settings: Settings) -> None:
    place = begin(client, sha256="0" * 64)

    answer = send(client, place, CONTENT, 0)

    assert (answer.status_code, answer.json()["error"]) == (460, "upload_checksum_mismatch")
    assert answer.json()["details"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert not folder_of(settings, place).exists()
    assert client.head(place, headers=TUS).status_code == 404


def test_more_than_was_announced_is_refused(client: TestClient) -> None:
    place = begin(client, size=1000)
    send(client, place, CONTENT[:900], 0)

    def endless() -> Iterator[bytes]:
        yield b"x" * 60
        yield b"x" * 60

    announced = send(client, place, CONTENT[:101], 900)
    silent = send(client, place, endless(), 900)

    assert announced.status_code == silent.status_code == 413
    assert 900 <= offset_of(client, place) <= 1000


def test_a_file_above_the_limit_does_not_begin(client: TestClient, settings: Settings) -> None:
    settings.max_upload_bytes = 1000

    answer = client.post(API, headers={**TUS, "Upload-Length": "1001"})

    assert (answer.status_code, answer.json()["error"]) == (413, "upload_too_large")
    assert not (settings.data_root / "uploads").exists()


def test_a_file_that_would_fill_the_disk_does_not_begin(client: TestClient, settings: Settings) -> None:
    settings.min_free_disk_bytes = 2**62

    answer = client.post(API, headers={**TUS, "Upload-Length": "10"})

    assert (answer.status_code, answer.json()["error"]) == (507, "disk_full")


@pytest.mark.parametrize("length", ["-1", "many", "9" * 30, ""])
def test_a_length_is_a_number(client: TestClient, length: str) -> None:
    assert client.post(API, headers={**TUS, "Upload-Length": length}).status_code == 422
    assert client.post(API, headers=TUS).status_code == 422


@pytest.mark.parametrize("metadata", ["filename %%%", f"sha256 {encode('xyz')}", "filename /w=="])
def test_metadata_has_a_form(client: TestClient, metadata: str) -> None:
    answer = client.post(API, headers={**TUS, "Upload-Length": "1", "Upload-Metadata": metadata})

    assert (answer.status_code, answer.json()["error"]) == (422, "upload_malformed")


@pytest.mark.parametrize("version", [None, "0.2.2", "2.0.0"])
def test_another_protocol_is_refused(client: TestClient, version: str | None) -> None:
    headers = {"Upload-Length": "1"} | ({"Tus-Resumable": version} if version else {})

    answer = client.post(API, headers=headers)

    assert answer.status_code == 412
    assert answer.headers["Tus-Version"] == "1.0.0"


def test_a_piece_has_its_own_content_type(client: TestClient) -> None:
    place = begin(client)

    assert send(client, place, b"abc", 0, Content_Type="application/json").status_code == 415


@pytest.mark.parametrize(
    "filename", ["../../etc/passwd.jsonl", "..\\..\\x.jsonl", "/abs/p.jsonl", "a\nb\x00c.jsonl", "数据.jsonl"]
)
def test_a_file_name_is_never_a_path(client: TestClient, settings: Settings, filename: str) -> None:
    place = begin(client, size=3, filename=filename)
    send(client, place, b"abc", 0)

    shown = client.get(place).json()["filename"]
    assert not set(shown) & {"/", "\\", "\n", "\x00"}
    names = {path.name for path in (settings.data_root / "uploads").rglob("*") if path.is_file()}
    assert names == {"data", "lock", "upload.json"}


@pytest.mark.parametrize("name", ["up_aaaaaaaaaaaa", "x", "..", "up_../../../../etc", "up_%2e%2e%2f"])
def test_an_upload_that_is_not_there(client: TestClient, name: str) -> None:
    place = f"{API}/{name}" if name != ".." else f"{API}/%2e%2e"

    assert client.head(place, headers=TUS).status_code == 404
    assert client.get(place).status_code == 404
    assert send(client, place, b"abc", 0).status_code == 404
    assert client.delete(place, headers=TUS).status_code == 404


def test_an_empty_file_is_complete_at_once(client: TestClient) -> None:
    assert client.get(begin(client, size=0)).json()["is_complete"] is True


def test_two_cannot_write_at_once(client: TestClient, settings: Settings) -> None:
    place = begin(client)
    other = storage.StoredUpload(folder_of(settings, place))

    with other.locked():
        answer = send(client, place, b"abc", 0)
        assert (answer.status_code, answer.json()["error"]) == (423, "upload_locked")
        assert client.delete(place, headers=TUS).status_code == 423
        with pytest.raises(UploadLocked), other.locked():
            pass

    assert send(client, place, b"abc", 0).status_code == 204


def test_a_forgotten_upload_is_gone(client: TestClient, settings: Settings) -> None:
    place = begin(client)

    assert client.delete(place, headers=TUS).status_code == 204

    assert client.head(place, headers=TUS).status_code == 404
    assert not folder_of(settings, place).exists()


def test_an_upload_that_an_import_waits_for_is_kept(
    client: TestClient, settings: Settings, database: Database
) -> None:
    place = begin(client, size=2, filename="rows.jsonl")
    send(client, place, b"{}", 0)
    source = {"kind": "upload", "upload": place.rpartition("/")[2]}
    assert client.post("/api/v1/datasets/imports", json={"source": source}).status_code == 201
    _grow_old(folder_of(settings, place))

    answer = client.delete(place, headers=TUS)

    assert (answer.status_code, answer.json()["error"]) == (409, "upload_in_use")
    assert service.remove_expired(database, settings) == 0
    assert folder_of(settings, place).exists()


def test_uploads_expire(client: TestClient, settings: Settings, database: Database) -> None:
    old, young, busy = begin(client), begin(client), begin(client)
    for place in (old, busy):
        _grow_old(folder_of(settings, place))

    with storage.StoredUpload(folder_of(settings, busy)).locked():
        removed = service.remove_expired(database, settings)

    assert removed == 1
    assert [folder_of(settings, place).exists() for place in (old, young, busy)] == [False, True, True]


def test_the_last_byte_before_a_crash_is_enough(client: TestClient, settings: Settings) -> None:
    place = begin(client, size=3, filename="rows.jsonl")
    (folder_of(settings, place) / "data").write_bytes(b"{}\n")
    upload_id = place.rpartition("/")[2]

    upload = client.get(place).json()
    assert (upload["is_complete"], upload["sha256"]) == (True, None)
    assert storage.require_complete(settings, upload_id).sha256 is None
    found = storage.find_complete(settings, upload_id)
    assert found is not None
    assert found.sha256 == client.get(place).json()["sha256"] == hashlib.sha256(b"{}\n").hexdigest()


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may read an upload from its beginning."""

    def refuse(path: Path) -> str:
        raise AssertionError(f"{path.name} was read again")

    monkeypatch.setattr(storage, "hash_file", refuse)


@pytest.mark.usefixtures("no_reading")
def test_the_last_piece_reads_nothing_again(client: TestClient) -> None:
    place = begin(client, sha256=hashlib.sha256(CONTENT).hexdigest())
    send(client, place, CONTENT[:1000], 0)
    send(client, place, b"x" * 500, 1000, Upload_Checksum=checksum(b"another piece"))
    send(client, place, CONTENT[1000:5000], 1000, Upload_Checksum=checksum(CONTENT[1000:5000]))
    other = begin(client)
    send(client, other, CONTENT[:7000], 0)

    last = send(client, place, CONTENT[5000:], 5000)

    assert last.status_code == 204
    assert client.get(place).json()["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    send(client, other, CONTENT[7000:], 7000)
    assert client.get(other).json()["sha256"] == hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.usefixtures("no_reading")
def test_after_a_restart_the_last_piece_is_taken_without_looking_at_the_whole(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = begin(client, filename="rows.jsonl", sha256="0" * 64)
    send(client, place, CONTENT[:1000], 0)
    monkeypatch.setattr(receiving, "_HASHES", RunningHashes())

    assert send(client, place, CONTENT[1000:], 1000).status_code == 204

    upload = client.get(place).json()
    assert (upload["is_complete"], upload["sha256"]) == (True, None)
    monkeypatch.undo()
    with pytest.raises(ChecksumMismatch):
        storage.find_complete(settings, place.rpartition("/")[2])
    assert not folder_of(settings, place).exists()


def test_a_piece_of_another_process_is_noticed(client: TestClient, settings: Settings) -> None:
    place = begin(client)
    send(client, place, CONTENT[:1000], 0)
    with (folder_of(settings, place) / "data").open("ab") as file:
        file.write(CONTENT[1000:2000])

    send(client, place, CONTENT[2000:], 2000)

    assert client.get(place).json()["sha256"] is None
    found = storage.find_complete(settings, place.rpartition("/")[2])
    assert found is not None
    assert found.sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_hashes_of_uploads_that_nobody_goes_on_with_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_hashes, "_MOST", 2)
    hashes = RunningHashes()
    for name in ("a", "b", "c"):
        hashes.keep(name, 3, hashlib.sha256(b"abc"))

    assert hashes.take("a", 3) is None
    assert [each.hexdigest() for name in ("b", "c") if (each := hashes.take(name, 3))] == [
        hashlib.sha256(b"abc").hexdigest()
    ] * 2
    assert hashes.take("c", 3) is None


def test_uploads_need_a_login(anonymous: TestClient, settings: Settings) -> None:
    assert anonymous.post(API, headers={**TUS, "Upload-Length": "1"}).status_code == 401
    assert anonymous.options(API).status_code == 401
    assert not (settings.data_root / "uploads").exists()


def _grow_old(folder: Path) -> None:
    before = time.time() - 25 * 3600
    for path in (folder / "data", folder):
        os.utime(path, (before, before))
