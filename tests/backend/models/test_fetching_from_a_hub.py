"""A worker fetches a hub model; the hub is a stand-in that speaks what the client needs of its API."""

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.models import repository, service
from trellis_api.models.catalogue import HubOrigin, list_entries
from trellis_api.models.inspection import ModelFacts, inspect_folder
from trellis_api.models.models import Model
from trellis_testing.stand_in_hub import COMMIT, StandInHub
from trellis_testing.waiting import wait_until
from trellis_workers.models import fetch, space
from trellis_workers.models.hub import FetchFailed

TOKEN = "hf_secret_of_the_test"


@pytest.fixture
def hub(
    tmp_path: Path, write_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[StandInHub]:
    folder = write_model(tmp_path / "source")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    hub = StandInHub({path.name: path.read_bytes() for path in folder.iterdir()})
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield hub
    hub.close()


@pytest.fixture
def open_hub_of_catalogue(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], StandInHub]]:
    """Starts a hub that has the catalogue's repository at a commit."""
    opened: list[StandInHub] = []

    def open_hub(commit: str) -> StandInHub:
        _, origin = find_hub_entry()
        opened.append(StandInHub(hub.files, repository=origin.repo_id, commit=commit))
        monkeypatch.setenv("HF_ENDPOINT", opened[-1].url)
        return opened[-1]

    yield open_hub
    for each in opened:
        each.close()


@pytest.fixture
def add_model(database: Database) -> Callable[..., str]:
    """Writes a hub model that waits to be fetched; returns its id."""

    def add(repo_id: str = "team/tiny", revision: str = "main", **changes: Any) -> str:
        model_id = new_id("mdl")
        source = {"kind": "hub", "repo_id": repo_id, "revision": revision}
        values = {"state": "pending", "source": source, "lineage": {}, "warnings": [], **changes}
        with database.write() as session:
            session.add(Model(id=model_id, name=model_id, **values))
        return model_id

    return add


def find_hub_entry() -> tuple[str, HubOrigin]:
    """Name and origin of the first model of the catalogue that a hub has."""
    return next((entry.name, entry.origin) for entry in list_entries() if isinstance(entry.origin, HubOrigin))


def read(database: Database, model_id: str) -> Model:
    with database.read() as session:
        model = repository.find_model(session, model_id=model_id)
    assert model is not None
    return model


def test_a_waiting_model_is_fetched_and_ready(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    model_id = add_model()

    assert fetch.fetch_pending(settings, database) == [model_id]

    model = read(database, model_id)
    assert (model.state, model.revision, model.path) == ("ready", COMMIT, f"models/{model_id}")
    assert model.parameter_count == 10_010
    assert (settings.data_root / "models" / model_id / "model.safetensors").is_file()


def test_a_model_of_the_catalogue_is_fetched_by_its_name(
    settings: Settings,
    database: Database,
    open_hub_of_catalogue: Callable[..., StandInHub],
    add_model: Callable[..., str],
) -> None:
    name, origin = find_hub_entry()
    open_hub_of_catalogue(origin.revision)
    model_id = add_model(source={"kind": "catalogue", "name": name})

    assert fetch.fetch_pending(settings, database) == [model_id]

    model = read(database, model_id)
    assert (model.state, model.revision) == ("ready", origin.revision)
    assert (settings.data_root / "models" / model_id / "model.safetensors").is_file()


def test_a_model_of_the_catalogue_is_never_fetched_at_another_commit(
    settings: Settings,
    database: Database,
    open_hub_of_catalogue: Callable[..., StandInHub],
    add_model: Callable[..., str],
) -> None:
    """What is there now may be other files than those that the catalogue's size and licence are of."""
    name, origin = find_hub_entry()
    hub = open_hub_of_catalogue(COMMIT)
    model_id = add_model(source={"kind": "catalogue", "name": name})

    fetch.fetch_model(settings, database, model_id=model_id)

    reason = f"'{origin.repo_id}' has no revision '{origin.revision}'."
    assert reason in (read(database, model_id).state_reason or "")
    assert hub.downloaded == []


def test_pickles_are_never_downloaded(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    fetch.fetch_model(settings, database, model_id=add_model())

    assert "model.safetensors" in hub.downloaded
    assert "pytorch_model.bin" not in hub.downloaded


def test_a_model_is_fetched_once_by_two_workers(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    model_id = add_model(state="fetching")

    assert not fetch.fetch_model(settings, database, model_id=model_id)

    assert read(database, model_id).state == "fetching"
    assert hub.downloaded == []


def test_a_fetch_whose_worker_died_is_taken_over(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    model_id = add_model(state="fetching", state_changed_at=utc_now() - timedelta(minutes=5))

    assert fetch.fetch_pending(settings, database) == [model_id]

    assert read(database, model_id).state == "ready"


def test_a_private_model_needs_the_token_which_is_stored_nowhere(
    settings: Settings,
    database: Database,
    hub: StandInHub,
    add_model: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub.required_token = TOKEN
    refused, accepted = add_model(), add_model()

    fetch.fetch_model(settings, database, model_id=refused)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    fetch.fetch_model(settings, database, model_id=accepted)

    assert "HF_TOKEN has no read access" in (read(database, refused).state_reason or "")
    assert read(database, accepted).state == "ready"
    assert TOKEN not in read(database, accepted).model_dump_json()
    written = [path for path in settings.data_root.rglob("*") if path.is_file()]
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"repo_id": "team/other"}, "'team/other' was not found"),
        ({"revision": "v9"}, "'team/tiny' has no revision 'v9'."),
    ],
)
def test_what_the_hub_lacks_is_named(
    settings: Settings,
    database: Database,
    hub: StandInHub,
    add_model: Callable[..., str],
    source: dict[str, str],
    reason: str,
) -> None:
    model_id = add_model(**source)

    fetch.fetch_model(settings, database, model_id=model_id)

    model = read(database, model_id)
    assert model.state == "failed"
    assert reason in (model.state_reason or "")


def test_a_gated_model_says_what_to_do(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    hub.is_gated = True
    model_id = add_model()

    fetch.fetch_model(settings, database, model_id=model_id)

    assert "accept its terms" in (read(database, model_id).state_reason or "")


def test_a_broken_hub_fails_the_fetch_with_its_status(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    hub.is_broken = True
    model_id = add_model()

    fetch.fetch_model(settings, database, model_id=model_id)

    assert read(database, model_id).state_reason == "127.0.0.1 returned HTTP 500."


def test_a_hub_that_is_away_fails_the_fetch(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    hub.close()
    model_id = add_model()

    fetch.fetch_model(settings, database, model_id=model_id)

    assert read(database, model_id).state_reason == "127.0.0.1 cannot be reached."


def test_a_repository_without_a_model_fails_with_what_is_missing(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    del hub.files["model.safetensors"]
    model_id = add_model()

    fetch.fetch_model(settings, database, model_id=model_id)

    assert "no safetensors weights" in (read(database, model_id).state_reason or "")


def test_a_model_that_does_not_fit_on_the_disk_is_not_begun(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    settings.min_free_disk_bytes = 2**62
    model_id = add_model()

    fetch.fetch_model(settings, database, model_id=model_id)

    assert "bytes are free in the data root" in (read(database, model_id).state_reason or "")
    assert hub.downloaded == []


def test_a_model_deleted_during_its_fetch_leaves_nothing(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    model_id = add_model()
    deletion = threading.Lock()

    def delete() -> None:
        with deletion, database.write() as session:
            model = repository.find_model(session, model_id=model_id)
            if model is not None:
                repository.delete_model(session, model)

    hub.before_download = delete

    assert fetch.fetch_model(settings, database, model_id=model_id)

    assert not (settings.data_root / "models" / model_id).exists()


def test_an_unexpected_error_is_the_reason_of_the_failure(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    model_id = add_model("team/a..b")  # the hub's client refuses the name by an error of its own

    assert fetch.fetch_pending(settings, database) == [model_id]

    model = read(database, model_id)
    assert model.state == "failed"
    assert (model.state_reason or "").startswith("Unexpected worker error: HFValidationError: ")
    assert fetch.fetch_pending(settings, database) == []


def cancel(database: Database, model_id: str) -> None:
    with database.write() as session:
        service.cancel_fetch(session, model_id=model_id)


def test_a_cancelled_fetch_ends_at_once_and_a_retry_goes_on_from_what_is_there(
    settings: Settings, database: Database, hub: StandInHub, add_model: Callable[..., str]
) -> None:
    model_id = add_model()
    folder = settings.data_root / "models" / model_id
    is_over = threading.Event()

    def hang(name: str) -> None:
        if name == "model.safetensors":
            wait_until((folder / "config.json").is_file, 30, "the other files")
            cancel(database, model_id)
            is_over.wait(60)

    hub.before_file = hang
    assert fetch.fetch_model(settings, database, model_id=model_id)  # while the hub sends nothing
    is_over.set()

    model = read(database, model_id)
    assert (model.state, model.state_cause, model.path) == ("failed", "cancelled", None)
    assert (folder / "config.json").is_file()
    hub.before_file, hub.downloaded = lambda _name: None, []
    with database.write() as session:
        service.retry_fetch(session, model_id=model_id)
    assert fetch.fetch_pending(settings, database) == [model_id]
    assert (read(database, model_id).state, read(database, model_id).state_cause) == ("ready", None)
    assert "model.safetensors" in hub.downloaded
    assert "config.json" not in hub.downloaded


def test_a_fetch_that_was_cancelled_while_it_was_inspected_is_not_ready(
    settings: Settings,
    database: Database,
    hub: StandInHub,
    add_model: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model_id = add_model()

    def inspect(folder: Path, *, root: Path) -> ModelFacts:
        cancel(database, model_id)
        return inspect_folder(folder, root=root)

    monkeypatch.setattr(fetch, "inspect_folder", inspect)
    fetch.fetch_model(settings, database, model_id=model_id)

    assert (read(database, model_id).state, read(database, model_id).state_cause) == ("failed", "cancelled")
    assert (settings.data_root / "models" / model_id / "model.safetensors").is_file()


def test_a_download_that_goes_on_needs_only_the_space_of_what_is_missing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.safetensors").write_bytes(bytes(90))
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: SimpleNamespace(free=10))
    settings.min_free_disk_bytes = 0

    space.require_space(settings, tmp_path, 100)
    with pytest.raises(FetchFailed, match="needs 11 bytes, but only 10 bytes are free"):
        space.require_space(settings, tmp_path, 101)


def claim_anew(database: Database, model_id: str) -> datetime:
    """Cancel a fetch and start it again, on another worker."""
    cancel(database, model_id)
    with database.write() as session:
        service.retry_fetch(session, model_id=model_id)
    with database.write() as session:
        claim = repository.claim_fetch(session, model_id=model_id, lost_before=utc_now())
    assert claim is not None
    return claim


def test_a_fetch_that_was_started_again_elsewhere_is_not_settled_by_the_old_one(
    settings: Settings,
    database: Database,
    hub: StandInHub,
    add_model: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model_id = add_model()
    claims: list[datetime] = []

    def inspect(folder: Path, *, root: Path) -> ModelFacts:
        claims.append(claim_anew(database, model_id))
        return inspect_folder(folder, root=root)

    monkeypatch.setattr(fetch, "inspect_folder", inspect)
    fetch.fetch_model(settings, database, model_id=model_id)

    assert (read(database, model_id).state, read(database, model_id).state_changed_at) == (
        "fetching",
        claims[0],
    )


def test_a_sign_of_life_is_that_of_one_claim(database: Database, add_model: Callable[..., str]) -> None:
    model_id = add_model()
    with database.write() as session:
        old = repository.claim_fetch(session, model_id=model_id, lost_before=utc_now())
    assert old is not None
    new = claim_anew(database, model_id)

    def touch(claim: datetime) -> datetime | None:
        with database.write() as session:
            return repository.touch_fetch(session, model_id=model_id, claim=claim, progress=None)

    assert touch(old) is None
    assert (later := touch(new)) is not None
    assert touch(later) is not None
