"""Models go elsewhere: to a stand-in of the hub, and into GGUF files. API and worker are real."""

import hashlib
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.models.models import Model
from trellis_api.transfers import service
from trellis_testing.model_folders import write_model_folder
from trellis_testing.stand_in_hub import COMMIT, StandInHub
from trellis_workers.transfers import run

TOKEN = "hf_secret_of_the_test"
TRANSFERS = "/api/v1/transfers"


@pytest.fixture
def database_url(copied_database_url: str) -> str:
    """A database of the test's own: workers run beside the test."""
    return copied_database_url


@pytest.fixture
def database(own_database: Database) -> Database:
    """Each thread has a connection of its own."""
    return own_database


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    hub = StandInHub({})
    hub.required_token = TOKEN
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    yield hub
    hub.close()


@pytest.fixture
def model(client: TestClient, settings: Settings) -> dict[str, Any]:
    """A model that is ready; its weights are no weights that any engine reads."""
    write_model_folder(settings.data_root / "models" / "bot")
    answer = client.post(
        "/api/v1/models", json={"name": "bot 1", "source": {"kind": "local", "path": "models/bot"}}
    )
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def push(client: TestClient, model: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/models/{model['id']}/push", json={"repo_id": "team/tiny", **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def read(client: TestClient, transfer: dict[str, Any]) -> dict[str, Any]:
    return dict(client.get(f"{TRANSFERS}/{transfer['id']}").json())


def test_a_model_is_pushed_with_its_card_as_one_commit(
    client: TestClient, settings: Settings, database: Database, hub: StandInHub, model: dict[str, Any]
) -> None:
    transfer = push(client, model)
    assert (transfer["state"], transfer["can_cancel"]) == ("queued", True)

    assert run.run_waiting(settings, database) == [transfer["id"]]

    found = read(client, transfer)
    assert (found["state"], found["reason"]) == ("succeeded", None)
    assert found["result"]["commit"] == COMMIT
    assert found["result"]["url"] == f"{hub.url}/team/tiny/tree/main"
    assert found["progress"]["done_bytes"] == found["progress"]["total_bytes"] > 0
    folder = settings.data_root / "models" / "bot"
    assert hub.files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert hub.files["config.json"] == (folder / "config.json").read_bytes()
    card = client.get(f"/api/v1/models/{model['id']}/card").text
    assert hub.files["README.md"].decode() == card
    assert hub.messages == ["bot 1 from Trellis"]
    assert hub.created[0]["visibility"] == "private"


def test_a_card_that_the_hub_refuses_is_told_in_its_words_before_anything_is_sent(
    client: TestClient,
    settings: Settings,
    database: Database,
    hub: StandInHub,
    model: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrived: list[int] = []
    hub.before_upload = arrived.append
    card = "---\nlicense: mine\nbase_model: ft:starter:sums\n---\n"
    monkeypatch.setattr(run, "read_card", lambda *_arguments, **_named: card)
    transfer = push(client, model)

    run.run_waiting(settings, database)

    found = read(client, transfer)
    assert found["state"] == "failed"
    assert '"license" must be one of [apache-2.0, ' in found["reason"]
    assert '"base_model" with value "ft:starter:sums" is not valid. Use a model id' in found["reason"]
    assert (arrived, hub.created, hub.committed) == ([], [], [])


def test_a_card_that_was_edited_is_pushed_as_long_as_its_numbers_are_right(
    client: TestClient, settings: Settings, database: Database, hub: StandInHub, model: dict[str, Any]
) -> None:
    path = f"/api/v1/models/{model['id']}"
    card = client.get(f"{path}/card").text
    edited = f"{card}\n## Intended use\n\nNone.\n"
    transfer = push(client, model, card=edited)

    run.run_waiting(settings, database)

    found = read(client, transfer)
    assert (found["state"], found["reason"], found["has_own_card"]) == ("succeeded", None, True)
    assert "card" not in found["request"]
    assert hub.files["README.md"].decode() == edited
    wrong = client.post(
        f"{path}/push",
        json={"repo_id": "team/tiny", "card": edited.replace(f"name: {model['name']}", "name: other")},
    )
    nothing = client.post(f"{path}/push", json={"repo_id": "team/tiny", "card": "# mine"})
    assert (wrong.status_code, wrong.json()["error"]) == (409, "card_outdated")
    assert (nothing.status_code, nothing.json()["error"]) == (422, "card_unreadable")


def test_a_card_whose_numbers_change_while_the_push_waits_is_not_pushed(
    client: TestClient, settings: Settings, database: Database, hub: StandInHub, model: dict[str, Any]
) -> None:
    card = client.get(f"/api/v1/models/{model['id']}/card").text
    transfer = push(client, model, card=card)
    with database.write() as session:
        row = session.get(Model, model["id"])
        assert row is not None
        row.parameter_count = 7
        session.add(row)

    run.run_waiting(settings, database)

    found = read(client, transfer)
    assert (found["state"], hub.committed) == ("failed", [])
    assert "The card is no longer right" in found["reason"]


def test_the_token_is_stored_nowhere(
    client: TestClient, settings: Settings, database: Database, hub: StandInHub, model: dict[str, Any]
) -> None:
    transfer = push(client, model, message="first", revision="try-1")

    run.run_waiting(settings, database)

    assert read(client, transfer)["state"] == "succeeded"
    assert (hub.messages, hub.branches) == (["first"], {"main", "try-1"})
    written = [path for path in settings.data_root.rglob("*") if path.is_file()]
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("token", "said"),
    [
        (None, "set HF_TOKEN for the workers"),
        ("hf_of_another", "HF_TOKEN has no write access to 'team/tiny'"),
    ],
)
def test_a_push_without_the_right_token_fails_with_what_to_do(
    client: TestClient,
    settings: Settings,
    database: Database,
    hub: StandInHub,
    model: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    token: str | None,
    said: str,
) -> None:
    if token is None:
        monkeypatch.delenv("HF_TOKEN")
    else:
        monkeypatch.setenv("HF_TOKEN", token)
    transfer = push(client, model)

    run.run_waiting(settings, database)

    found = read(client, transfer)
    assert (found["state"], found["can_resume"]) == ("failed", True)
    assert said in found["reason"]
    assert "hf_of_another" not in str(found)


def test_a_cancelled_push_commits_nothing_and_goes_on_where_it_stopped(
    client: TestClient, settings: Settings, database: Database, hub: StandInHub, model: dict[str, Any]
) -> None:
    arrived, may_go_on = threading.Event(), threading.Event()
    sent: list[int] = []

    def hold(size: int) -> None:
        sent.append(size)
        arrived.set()
        may_go_on.wait(20)

    hub.before_upload = hold
    transfer = push(client, model)
    worker = threading.Thread(target=run.run_waiting, args=(settings, database))
    worker.start()
    assert arrived.wait(30)

    answer = client.post(f"{TRANSFERS}/{transfer['id']}/cancel")
    began = time.monotonic()
    worker.join(20)

    assert not worker.is_alive()
    assert time.monotonic() - began < 10
    may_go_on.set()
    assert answer.json()["state"] == read(client, transfer)["state"] == "cancelled"
    assert hub.committed == []
    weights = (settings.data_root / "models" / "bot" / "model.safetensors").read_bytes()
    hub.large[hashlib.sha256(weights).hexdigest()] = weights  # it had arrived
    assert client.post(f"{TRANSFERS}/{transfer['id']}/resume").json()["state"] == "queued"
    run.run_waiting(settings, database)
    assert read(client, transfer)["state"] == "succeeded"
    assert (len(sent), hub.files["model.safetensors"]) == (1, weights)


@pytest.mark.slow
def test_a_hub_that_breaks_is_said_and_can_be_tried_again(
    client: TestClient, settings: Settings, database: Database, hub: StandInHub, model: dict[str, Any]
) -> None:
    transfer = push(client, model)
    hub.is_broken = True

    run.run_waiting(settings, database)

    assert "returned HTTP 500" in read(client, transfer)["reason"]
    hub.is_broken = False
    client.post(f"{TRANSFERS}/{transfer['id']}/resume")
    run.run_waiting(settings, database)
    assert read(client, transfer)["state"] == "succeeded"


def test_a_transfer_that_loses_its_worker_again_and_again_is_given_up(
    client: TestClient, database: Database, model: dict[str, Any]
) -> None:
    transfer = push(client, model)
    claims = []
    for _ in range(5):
        with database.write() as session:
            claims.append(service.claim(session, transfer_id=transfer["id"]) is not None)
            row = service.get_transfer(session, transfer_id=transfer["id"])
            row.touched_at = utc_now() - timedelta(minutes=5)

    assert claims == [True, True, True, False, False]
    found = read(client, transfer)
    assert (found["state"], found["reason"]) == ("failed", "The worker that carried it out has died 3 times.")
    client.post(f"{TRANSFERS}/{transfer['id']}/resume")
    with database.write() as session:
        again = service.claim(session, transfer_id=transfer["id"])
        assert again is not None
        # What an earlier worker says does not count any more.
        assert not service.touch(session, transfer_id=again.id, attempt=again.attempt - 1, progress=None)
        assert service.touch(session, transfer_id=again.id, attempt=again.attempt, progress=None)


def test_what_may_be_done_follows_from_the_state(
    client: TestClient, settings: Settings, model: dict[str, Any]
) -> None:
    transfer = push(client, model)
    path = f"{TRANSFERS}/{transfer['id']}"

    codes = [
        client.delete(f"/api/v1/models/{model['id']}").json()["error"],
        client.delete(path).json()["error"],
        client.post(f"{path}/resume").json()["error"],
        client.get(f"{path}/file").json()["error"],
        client.post(f"{path}/cancel").status_code,
        client.post(f"{path}/cancel").json()["error"],
        client.delete(path).status_code,
        client.get(path).json()["error"],
        client.post(f"/api/v1/models/{model['id']}/push", json={"repo_id": "../x"}).status_code,
    ]

    assert codes == [
        "model_in_use",
        "transfer_unfinished",
        "transfer_not_resumable",
        "transfer_file_missing",
        200,
        "transfer_finished",
        204,
        "transfer_not_found",
        422,
    ]
    assert client.get(TRANSFERS, params={"model": model["id"]}).json()["items"] == []


@pytest.mark.slow
def test_a_model_becomes_a_gguf_file_that_is_downloaded_in_parts(
    client: TestClient, settings: Settings, database: Database
) -> None:
    from trellis_train.starter.model import write_model

    write_model(settings.data_root / "models" / "starter", seed=1)
    source = {"kind": "local", "path": "models/starter"}
    model = client.post("/api/v1/models", json={"name": "sums: v1", "source": source}).json()

    transfer = client.post(f"/api/v1/models/{model['id']}/gguf", json={"type": "q8_0"}).json()
    run.run_waiting(settings, database)

    found = read(client, transfer)
    assert (found["state"], found["reason"], found["has_file"]) == ("succeeded", None, True)
    assert found["result"]["file"] == "sums-v1.q8_0.gguf"
    path = f"{TRANSFERS}/{transfer['id']}/file"
    whole = client.get(path)
    assert (len(whole.content), whole.content[:4]) == (found["result"]["size_bytes"], b"GGUF")
    assert hashlib.sha256(whole.content).hexdigest() == found["result"]["sha256"]
    part = client.get(path, headers={"Range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, whole.content[4:8])
    client.delete(f"{TRANSFERS}/{transfer['id']}")
    assert not (settings.data_root / "transfers" / transfer["id"]).exists()


@pytest.mark.slow
def test_a_model_that_gguf_cannot_hold_is_named(
    client: TestClient, settings: Settings, database: Database, model: dict[str, Any]
) -> None:
    transfer = client.post(f"/api/v1/models/{model['id']}/gguf", json={}).json()

    run.run_waiting(settings, database)

    found = read(client, transfer)
    assert (found["state"], found["result"]) == ("failed", None)
    assert "which GGUF needs" in found["reason"]
