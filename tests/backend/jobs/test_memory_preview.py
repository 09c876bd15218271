"""The memory estimate in the preview: from the model's own configuration, read once."""

import json
import time
from pathlib import Path
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


@pytest.fixture
def folder(settings: Settings, model: Model) -> Path:
    """The model's folder, with a configuration in it."""
    folder = settings.data_root / str(model.path)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def preview(client: TestClient, model: Model, dataset: Dataset, **changes: Any) -> dict[str, Any]:
    request = {"name": "a", "recipe": "grpo", "model": model.id, "dataset": dataset.id, **changes}
    answer = client.post("/api/v1/jobs/preview", json=request)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_preview_says_what_the_run_will_need(
    client: TestClient, model: Model, dataset: Dataset, folder: Path
) -> None:
    memory = preview(client, model, dataset)["memory"]

    phases = {phase["name"]: phase for phase in memory["phases"]}
    assert {"rollout", "log_probs", "update"} <= phases.keys()
    assert memory["per_gpu_bytes"] == phases[memory["peak_phase"]]["total_bytes"]
    weights = next(part for part in phases["update"]["parts"] if part["name"] == "weights")
    assert weights["bytes"] == 4 * memory["parameters"]
    assert weights["how"]["zh"]
    assert memory["assumptions"]


def test_more_tokens_in_the_form_are_more_memory_in_the_preview(
    client: TestClient, model: Model, dataset: Dataset, folder: Path
) -> None:
    short = preview(client, model, dataset, params={"max_response_length": 16})["memory"]
    long = preview(client, model, dataset, params={"max_response_length": 256})["memory"]

    assert long["per_gpu_bytes"] > short["per_gpu_bytes"]


@pytest.mark.parametrize("text", [None, "no json", "[]", "{}", '{"hidden_size": "x"}', "[" * 100_000])
def test_a_model_of_unknown_shape_has_no_estimate_and_can_be_previewed(
    client: TestClient, model: Model, dataset: Dataset, settings: Settings, text: str | None
) -> None:
    if text is not None:
        (settings.data_root / str(model.path) / "config.json").write_text(text)

    composed = preview(client, model, dataset)

    assert composed["memory"] is None
    assert composed["command"]


def test_settings_of_any_kind_do_not_break_the_preview(
    client: TestClient, model: Model, dataset: Dataset, folder: Path
) -> None:
    overrides = {
        "actor_rollout_ref.rollout.n": 0,
        "data.max_prompt_length": -5,
        "actor_rollout_ref.actor.ppo_mini_batch_size": None,
    }

    assert "memory" in preview(client, model, dataset, overrides=overrides)


def test_the_configuration_is_read_once(
    client: TestClient, model: Model, dataset: Dataset, folder: Path
) -> None:
    first = preview(client, model, dataset)["memory"]
    (folder / "config.json").unlink()

    assert preview(client, model, dataset)["memory"] == first


def test_the_estimate_costs_a_preview_little(
    client: TestClient, model: Model, dataset: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure() -> float:
        times = []
        for _ in range(15):
            started = time.perf_counter()
            preview(client, model, dataset)
            times.append(time.perf_counter() - started)
        return sorted(times)[len(times) // 2]

    measure()
    with_estimate = measure()
    monkeypatch.setattr("trellis_api.jobs.submit.memory.estimate", lambda *_a, **_k: None)
    without = measure()

    assert with_estimate - without < 0.005 + 0.5 * without
