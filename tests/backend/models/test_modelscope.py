"""Models from and to ModelScope; a stand-in speaks what is used of its API."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.models.repository import find_model
from trellis_contracts.transfers import PROGRESS_FILE, PUSH_ORDER_FILE, PushedFile, PushOrder
from trellis_testing.stand_in_modelscope import StandInModelScope
from trellis_workers.models import fetch
from trellis_workers.models.hub import FetchFailed
from trellis_workers.models.modelscope import ModelScope
from trellis_workers.transfers.push import PushRefused, push

TOKEN = "ms-secret-of-the-test"


@pytest.fixture
def hub(
    tmp_path: Path, write_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[StandInModelScope]:
    folder = write_model(tmp_path / "source")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    hub = StandInModelScope({path.name: path.read_bytes() for path in folder.iterdir()})
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", hub.url)
    monkeypatch.delenv("MODELSCOPE_API_TOKEN", raising=False)
    yield hub
    hub.close()


def test_a_model_of_modelscope_is_fetched_and_ready(
    client: TestClient, settings: Settings, database: Database, hub: StandInModelScope
) -> None:
    source = {"kind": "hub", "hub": "modelscope", "repo_id": "team/tiny"}
    made = client.post("/api/v1/models", json={"name": "tiny", "source": source})
    assert made.status_code in {201, 202}, made.text

    fetch.fetch_model(settings, database, model_id=made.json()["id"])

    with database.read() as session:
        model = find_model(session, model_id=made.json()["id"])
    assert model is not None
    assert (model.state, model.revision, model.state_reason) == ("ready", "master", None)
    assert model.path is not None
    assert (settings.data_root / model.path / "model.safetensors").is_file()
    assert "pytorch_model.bin" not in hub.downloaded


def test_a_download_that_broke_off_goes_on_where_it_stopped(tmp_path: Path, hub: StandInModelScope) -> None:
    hub.files = {"config.json": b"{}", "model.safetensors": b"0123456789" * 100}
    hub.breaks_after = 400
    source = ModelScope()
    with pytest.raises(FetchFailed, match="broke off"):
        source.download_files("team/tiny", "master", ["model.safetensors"], tmp_path)

    source.download("team/tiny", "master", tmp_path)

    assert (tmp_path / "model.safetensors").read_bytes() == hub.files["model.safetensors"]
    assert "bytes=400-" in hub.ranges
    assert set(hub.encodings) == {"identity"}, "ranges would count compressed bytes"
    assert list(tmp_path.glob("*.part")) == []
    before = len(hub.downloaded)
    source.download("team/tiny", "master", tmp_path)
    assert len(hub.downloaded) == before, "what is there is not fetched again"


def test_what_broke_off_of_another_revision_is_not_continued(tmp_path: Path, hub: StandInModelScope) -> None:
    hub.files, hub.breaks_after = {"model.safetensors": b"0123456789" * 100}, 400
    with pytest.raises(FetchFailed, match="broke off"):
        ModelScope().download("team/tiny", "master", tmp_path)
    hub.files = {"model.safetensors": b"abcd" * 100}

    ModelScope().download("team/tiny", "master", tmp_path)

    assert [path.name for path in tmp_path.glob("model*")] == ["model.safetensors"]
    assert (tmp_path / "model.safetensors").read_bytes() == b"abcd" * 100


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "sub/model.GGUF"])
def test_weights_without_a_sha256_are_refused(tmp_path: Path, hub: StandInModelScope, name: str) -> None:
    hub.files = {"config.json": b"{}", name: b"weights"}
    hub.unhashed = {"config.json", name}

    with pytest.raises(FetchFailed, match=f"lists {name} of 'team/tiny' without a SHA-256"):
        ModelScope().download_files("team/tiny", "master", [name], tmp_path)

    assert hub.downloaded == []


def test_a_text_file_without_a_sha256_is_never_continued(tmp_path: Path, hub: StandInModelScope) -> None:
    hub.files, hub.unhashed, hub.breaks_after = {"config.json": b'{"a": 1}'}, {"config.json"}, 4
    with pytest.raises(FetchFailed, match="broke off"):
        ModelScope().download("team/tiny", "master", tmp_path)
    hub.files = {"config.json": b'{"b": 2}'}

    ModelScope().download("team/tiny", "master", tmp_path)

    assert (tmp_path / "config.json").read_bytes() == b'{"b": 2}'
    assert hub.ranges == [None, None]


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>maintenance</html>",
        b"[]",
        b'{"Code": 200, "Data": null}',
        b'{"Code": 200, "Data": {}}',
        b'{"Code": 200, "Data": {"Files": [{"Size": 3}]}}',
        b'{"Code": 200, "Data": {"Files": [{"Path": "config.json", "Size": "much"}]}}',
        b'{"Code": 200, "Data": {"Files": ["config.json"]}}',
    ],
)
def test_an_answer_of_another_form_is_told(hub: StandInModelScope, answer: bytes) -> None:
    hub.answers = answer

    with pytest.raises(FetchFailed, match="gave an unexpected answer"):
        ModelScope().resolve("team/tiny", "master")


def test_a_file_that_is_not_the_one_of_the_listing_is_refused(tmp_path: Path, hub: StandInModelScope) -> None:
    hub.forged = {"config.json": b"{}"}

    with pytest.raises(FetchFailed, match="not the one that ModelScope names"):
        ModelScope().download("team/tiny", "master", tmp_path)

    assert not (tmp_path / "config.json").exists()


@pytest.mark.parametrize("name", ["../evil.json", "/etc/evil.json"])
def test_a_name_outside_of_the_folder_is_refused(tmp_path: Path, hub: StandInModelScope, name: str) -> None:
    hub.files = {name: b"{}"}

    with pytest.raises(FetchFailed, match="outside"):
        ModelScope().download("team/tiny", "master", tmp_path / "model")


@pytest.mark.parametrize(
    ("repo_id", "revision", "said"),
    [("team/other", "master", "no such model"), ("team/tiny", "v9", "no such model or revision")],
)
def test_what_is_not_there_is_told(hub: StandInModelScope, repo_id: str, revision: str, said: str) -> None:
    with pytest.raises(FetchFailed, match=said):
        ModelScope().resolve(repo_id, revision)


def test_a_private_model_needs_the_token(hub: StandInModelScope, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.required_token = TOKEN
    with pytest.raises(FetchFailed, match="check MODELSCOPE_API_TOKEN"):
        ModelScope().resolve("team/tiny", "master")
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", TOKEN)

    assert ModelScope().resolve("team/tiny", "master").size_bytes > 0


def test_a_server_that_is_away_is_told(hub: StandInModelScope) -> None:
    hub.close()

    with pytest.raises(FetchFailed, match="can't be reached"):
        ModelScope().resolve("team/tiny", "master")


@pytest.fixture
def order(tmp_path: Path) -> Path:
    """A push of a small and a large file, as a worker writes it."""
    (tmp_path / "config.json").write_text('{"a": 1}')
    (tmp_path / "model.safetensors").write_bytes(b"weights" * 1000)
    files = [
        PushedFile(name=name, path=str(tmp_path / name)) for name in ("config.json", "model.safetensors")
    ]
    order = PushOrder(
        hub="modelscope", repo_id="team/tiny", revision="master", private=True, message="bot 1", files=files,
        card="# bot",
    )  # fmt: skip
    (tmp_path / PUSH_ORDER_FILE).write_text(order.model_dump_json())
    return tmp_path


def test_a_push_makes_one_commit_and_what_is_stored_is_not_sent_again(
    order: Path, hub: StandInModelScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", TOKEN)
    hub.required_token, hub.files = TOKEN, None

    result = push(order)
    push(order)

    assert hub.created == [{"Path": "team", "Name": "tiny", "Visibility": 1}]
    assert hub.files == {
        "config.json": b'{"a": 1}',
        "model.safetensors": b"weights" * 1000,
        "README.md": b"# bot",
    }
    assert (hub.messages, len(hub.stored)) == (["bot 1", "bot 1"], 1)
    assert result == {"url": f"{hub.url}/models/team/tiny", "commit": "c1", "size_bytes": 7013}
    assert '"done_bytes": 7013' in (order / PROGRESS_FILE).read_text()


@pytest.mark.parametrize(
    ("address", "is_told"),
    [
        ("https://hub.example/store/1", True),
        ("https://hub.example:443/store/1", True),
        ("http://hub.example/store/1", False),
        ("https://store.hub.example/1", False),
        ("https://hub.example:8443/store/1", False),
        ("https://hub.example.store.test/1", False),
    ],
)
def test_only_the_endpoint_itself_gets_the_token(
    monkeypatch: pytest.MonkeyPatch, address: str, is_told: bool
) -> None:
    sent: list[dict[str, str]] = []

    def put(_client: httpx.Client, url: str, *, headers: dict[str, str], **_more: Any) -> httpx.Response:
        sent.append(headers)
        return httpx.Response(200, request=httpx.Request("PUT", url))

    monkeypatch.setattr(httpx.Client, "put", put)
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", "https://hub.example")
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", TOKEN)

    ModelScope()._store(address, b"weights", 7)

    assert (TOKEN in str(sent)) == is_told


def test_a_push_without_a_token_or_with_a_wrong_one_is_told(
    order: Path, hub: StandInModelScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PushRefused, match="set MODELSCOPE_API_TOKEN"):
        push(order)
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", "wrong")
    hub.required_token = TOKEN

    with pytest.raises(PushRefused, match="status 401") as refused:
        push(order)

    assert "wrong" not in str(refused.value)
    assert hub.messages == []


@pytest.mark.parametrize(
    ("body", "revision"),
    [({}, "master"), ({"revision": "master"}, "master"), ({"revision": "dev"}, None)],
)
def test_modelscope_takes_pushes_on_master_alone(
    client: TestClient,
    settings: Settings,
    write_model: Callable[..., Path],
    body: dict[str, Any],
    revision: str,
) -> None:
    write_model(settings.data_root / "models" / "bot")
    source = {"kind": "local", "path": "models/bot"}
    model = client.post("/api/v1/models", json={"name": "bot", "source": source}).json()

    answer = client.post(
        f"/api/v1/models/{model['id']}/push", json={"hub": "modelscope", "repo_id": "team/tiny", **body}
    )

    assert answer.status_code == (201 if revision else 422)
    if revision:
        assert answer.json()["request"]["revision"] == revision
