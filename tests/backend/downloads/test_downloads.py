"""Models and checkpoints as files: ranges, archives that go on where they stopped, and what stays here."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.downloads.archive import Archive
from trellis_api.downloads.errors import RangeNotSatisfiable
from trellis_api.downloads.listing import Folder, Listed
from trellis_api.downloads.ranges import parse_range
from trellis_api.jobs.models import Checkpoint
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

FILES = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 40, "sub/vocabulary.txt": b"a\nb\n"}


def fill(folder: Path) -> None:
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / ".hidden").write_text("not for others")


@pytest.fixture
def address(model: Model, settings: Settings) -> str:
    fill(settings.data_root / str(model.path))
    return f"/api/v1/models/{model.id}"


def unpack(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}  # type: ignore[union-attr]


def test_the_files_of_a_model_are_listed_with_their_sizes(client: TestClient, address: str) -> None:
    found = client.get(f"{address}/files").json()

    assert {each["name"]: each["size_bytes"] for each in found["items"]} == {
        name: len(content) for name, content in FILES.items()
    }
    assert found["size_bytes"] == sum(map(len, FILES.values()))


def test_a_file_comes_whole_or_from_where_it_stopped(client: TestClient, address: str) -> None:
    whole = client.get(f"{address}/files/model.safetensors")
    assert whole.content == FILES["model.safetensors"]

    rest = client.get(
        f"{address}/files/model.safetensors",
        headers={"Range": "bytes=10000-", "If-Range": whole.headers["etag"]},
    )

    assert (rest.status_code, rest.content) == (206, FILES["model.safetensors"][10_000:])
    assert client.get(f"{address}/files/sub/vocabulary.txt").content == b"a\nb\n"


@pytest.mark.parametrize(
    "name",
    [
        "../../trellis.db",
        "..%2f..%2fadmin.token",
        ".hidden",
        "/etc/passwd",
        "%2e%2e/x",
        "sub",
        "sub/",
        "absent",
    ],
)
def test_a_name_that_is_not_in_the_list_is_not_found(client: TestClient, address: str, name: str) -> None:
    answer = client.get(f"{address}/files/{name}")

    assert answer.status_code in (404, 405)
    assert "not for others" not in answer.text


def test_an_archive_holds_every_file_and_the_card(client: TestClient, address: str) -> None:
    answer = client.get(f"{address}/download")

    assert answer.status_code == 200
    assert len(answer.content) == int(answer.headers["content-length"])
    found = unpack(answer.content)
    assert found.pop("README.md").startswith(b"---\n")
    assert found == FILES
    assert ".tar" in answer.headers["content-disposition"]


def test_a_card_of_ones_own_is_not_replaced(
    client: TestClient, address: str, model: Model, settings: Settings
) -> None:
    (settings.data_root / str(model.path) / "README.md").write_text("mine")

    assert unpack(client.get(f"{address}/download").content)["README.md"] == b"mine"


def test_an_archive_that_broke_off_goes_on(client: TestClient, address: str) -> None:
    whole = client.get(f"{address}/download")
    etag = whole.headers["etag"]

    rest = client.get(f"{address}/download", headers={"Range": "bytes=3000-", "If-Range": etag})
    stale = client.get(f"{address}/download", headers={"Range": "bytes=3000-", "If-Range": '"other"'})
    beyond = client.get(f"{address}/download", headers={"Range": f"bytes={len(whole.content)}-"})

    assert (rest.status_code, whole.content[:3000] + rest.content) == (206, whole.content)
    assert rest.headers["content-range"] == f"bytes 3000-{len(whole.content) - 1}/{len(whole.content)}"
    assert (stale.status_code, stale.content) == (200, whole.content)
    assert (beyond.status_code, beyond.json()["error"]) == (416, "range_not_satisfiable")


def test_files_that_changed_make_another_archive(
    client: TestClient, address: str, model: Model, settings: Settings
) -> None:
    before = client.get(f"{address}/download").headers["etag"]
    path = settings.data_root / str(model.path) / "config.json"
    os.utime(path, ns=(1, 1))

    assert client.get(f"{address}/download").headers["etag"] != before


def test_a_link_out_of_the_data_root_is_refused(
    client: TestClient, address: str, model: Model, settings: Settings, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (settings.data_root / str(model.path) / "link").symlink_to(secret)

    for path in ("files", "files/link", "download"):
        answer = client.get(f"{address}/{path}")
        assert (answer.status_code, answer.json()["error"]) == (409, "folder_not_downloadable")


def test_a_model_that_is_not_here_says_so(client: TestClient, database: Database, model: Model) -> None:
    with database.write() as session:
        row = session.get(Model, model.id)
        assert row is not None
        row.path, row.state = None, "fetching"
        session.add(row)

    answer = client.get(f"/api/v1/models/{model.id}/download")

    assert (answer.status_code, answer.json()["error"]) == (409, "folder_not_downloadable")
    assert "fetching" in answer.json()["message"]


def test_a_checkpoint_is_downloaded_as_the_trainer_left_it(
    client: TestClient, make_job: Callable[..., str], settings: Settings, database: Database
) -> None:
    job_id = make_job(state=JobState.SUCCEEDED)
    folder = settings.checkpoint_dir(job_id) / "global_step_7"
    fill(folder)
    with database.write() as session:
        session.add(
            Checkpoint(job_id=job_id, step=7, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now())
        )
    address = f"/api/v1/jobs/{job_id}/checkpoints/7"

    assert unpack(client.get(f"{address}/download").content) == FILES
    part = client.get(f"{address}/files/model.safetensors", headers={"Range": "bytes=-4"})
    assert part.content == FILES["model.safetensors"][-4:]
    assert client.get(f"/api/v1/jobs/{job_id}/checkpoints/8/download").status_code == 404


def test_nobody_downloads_without_a_token(anonymous: TestClient, model: Model) -> None:
    for path in ("files", "files/config.json", "download", "card"):
        assert anonymous.get(f"/api/v1/models/{model.id}/{path}").status_code == 401


def test_a_file_that_became_shorter_breaks_the_answer_off(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"x" * 100)
    archive = Archive(Folder("a", [Listed("weights", path, 100, 0)]))
    path.write_bytes(b"x" * 99)

    with pytest.raises(OSError, match="shorter"):
        list(archive.read(0, archive.size_bytes))


@given(st.integers(0, 30_000), st.integers(0, 30_000))
def test_any_stretch_is_that_of_the_whole(first: int, second: int) -> None:
    folder = Folder("a", [Listed("one", Path(__file__), Path(__file__).stat().st_size, 0)])
    archive = Archive(folder, extra={"é" * 120: "text", "empty": ""})
    whole = b"".join(archive.read(0, archive.size_bytes))

    start, stop = sorted((first, second))

    assert b"".join(archive.read(start, stop)) == whole[start:stop]
    assert set(unpack(whole)) == {"é" * 120, "empty", "one"}


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (None, None),
        ("bytes=0-", (0, 100)),
        ("bytes=10-19", (10, 20)),
        ("bytes=90-900", (90, 100)),
        ("bytes=-30", (70, 100)),
        ("bytes=-300", (0, 100)),
        ("bytes=-", None),
        ("bytes=1-2,5-6", None),
        ("items=1-2", None),
    ],
)
def test_one_range_is_understood(header: str | None, wanted: Any) -> None:
    assert parse_range(header, 100) == wanted


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=50-40", "bytes=-0"])
def test_a_range_of_nothing_is_refused(header: str) -> None:
    with pytest.raises(RangeNotSatisfiable):
        parse_range(header, 100)
