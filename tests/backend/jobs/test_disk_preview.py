"""What a run will write is compared with the free disk, in the preview and at the submission."""

import json
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.models.models import Model

CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 259,
    "tie_word_embeddings": True,
}
Usage = namedtuple("Usage", ("total", "used", "free"))


@pytest.fixture
def leave(settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A disk with so many bytes to write to."""
    (settings.data_root / str(model.path) / "config.json").write_text(json.dumps(CONFIG))

    def choose(free: int) -> None:
        usage = Usage(10**15, 0, free + settings.min_free_disk_bytes)
        monkeypatch.setattr("trellis_api.jobs.forecast.disk.shutil.disk_usage", lambda _folder: usage)

    return choose


def request_for(model: Model, dataset: Dataset, **params: Any) -> dict[str, Any]:
    steps = {"total_steps": 10, "save_every": 1}
    return {
        "name": "a",
        "recipe": "grpo",
        "model": model.id,
        "dataset": dataset.id,
        "params": {**steps, **params},
    }


def checkpoint_bytes(client: TestClient, request: dict[str, Any]) -> int:
    memory = client.post("/api/v1/jobs/preview", json=request).json()["memory"]
    return 16 * int(memory["parameters"])


def test_a_disk_that_holds_no_checkpoint_refuses_the_job(
    client: TestClient, model: Model, dataset: Dataset, leave: Callable[[int], None]
) -> None:
    request = request_for(model, dataset)
    leave(checkpoint_bytes(client, request) - 1)

    preview = client.post("/api/v1/jobs/preview", json=request).json()
    answer = client.post("/api/v1/jobs", json=request)

    assert [(each["code"], each["field"]) for each in preview["errors"]] == [
        ("disk_too_small", "params.save_every")
    ]
    assert answer.status_code == 422
    assert "A checkpoint takes" in answer.json()["message"]


def test_a_disk_that_will_be_full_is_warned_of(
    client: TestClient, model: Model, dataset: Dataset, leave: Callable[[int], None]
) -> None:
    request = request_for(model, dataset)
    size = checkpoint_bytes(client, request)
    leave(5 * size)

    all_of_them = client.post("/api/v1/jobs/preview", json=request).json()
    few = client.post("/api/v1/jobs/preview", json=request_for(model, dataset, keep_checkpoints=2)).json()

    (warning,) = (each for each in all_of_them["warnings"] if each["code"] == "disk_fills_up")
    assert warning["field"] == "params.keep_checkpoints"
    assert "10 checkpoints" in warning["message"]
    assert all_of_them["errors"] == []
    assert "disk_fills_up" not in [each["code"] for each in few["warnings"]]


def test_the_job_of_a_submission_has_the_preset_that_it_was_checked_with(
    client: TestClient, model: Model, dataset: Dataset, leave: Callable[[int], None]
) -> None:
    leave(10**14)

    answer = client.post("/api/v1/jobs", json=request_for(model, dataset))

    assert answer.status_code == 201, answer.text
    assert answer.json()["preset"] == "cpu-tiny"


def test_a_disk_that_is_too_small_is_told_beside_other_errors(
    client: TestClient, model: Model, dataset: Dataset, leave: Callable[[int], None]
) -> None:
    request = request_for(model, dataset)
    leave(checkpoint_bytes(client, request) - 1)

    preview = client.post(
        "/api/v1/jobs/preview", json=request_for(model, dataset, no_such_parameter=1)
    ).json()

    codes = [each["code"] for each in preview["errors"]]
    assert "disk_too_small" in codes
    assert len(codes) == 2
