"""The memory estimate in the preview: from the model's own configuration, read once."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.forecast.memory import Estimated, estimate
from trellis_api.models.models import Model
from trellis_api.monitoring.probes import Probes
from trellis_recipes.compose import ComposeRequest, compose

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


def find_memory_warnings(composed: dict[str, Any]) -> list[dict[str, Any]]:
    return [warning for warning in composed["warnings"] if warning["code"].startswith("memory_")]


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


@dataclass(frozen=True)
class _Small:
    """A machine with less memory than any run needs."""

    memory_total_bytes: int = 1024**2
    gpus: tuple[()] = ()


def test_a_job_that_needs_more_than_there_is_is_warned_of_and_accepted(
    client: TestClient, model: Model, dataset: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Probes, "machine", lambda _self: (_Small(), 0.0))

    composed = preview(client, model, dataset)
    request = {"name": "too large", "recipe": "grpo", "model": model.id, "dataset": dataset.id}
    answer = client.post("/api/v1/jobs", json=request)

    memory = composed["memory"]
    assert memory["peak_bytes"] > memory["available_bytes"] == 1024**2
    (warning,) = (each for each in memory["warnings"] if "is more than" in each["en"])
    assert "超过" in warning["zh"]
    assert composed["errors"] == []
    assert answer.status_code == 201, answer.text
    assert answer.json()["state"] == "queued"


def test_memory_is_warned_of_while_another_field_is_wrong(
    client: TestClient, model: Model, dataset: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Probes, "machine", lambda _self: (_Small(), 0.0))

    composed = preview(client, model, dataset, params={"batch_size": 8, "mini_batch_size": 64})

    assert [error["code"] for error in composed["errors"]] == ["mini_batch_too_large"]
    assert any("is more than" in each["en"] for each in composed["memory"]["warnings"])


def test_more_tokens_in_the_form_are_more_memory_in_the_preview(
    client: TestClient, model: Model, dataset: Dataset, folder: Path
) -> None:
    short = preview(client, model, dataset, params={"max_response_length": 16})["memory"]
    long = preview(client, model, dataset, params={"max_response_length": 256})["memory"]

    assert long["per_gpu_bytes"] > short["per_gpu_bytes"]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "no json",
        "[]",
        "{}",
        '{"hidden_size": "x"}',
        "[" * 100_000,
        json.dumps({**CONFIG, "num_experts": 4, "mlp_only_layers": 3}),
    ],
)
def test_a_model_of_unknown_shape_has_no_estimate_and_can_be_previewed(
    client: TestClient, model: Model, dataset: Dataset, settings: Settings, text: str | None
) -> None:
    if text is not None:
        (settings.data_root / str(model.path) / "config.json").write_text(text)

    composed = preview(client, model, dataset)

    assert composed["memory"] is None
    assert composed["command"]
    assert [(each["code"], each["field"]) for each in find_memory_warnings(composed)] == [
        ("memory_model_unknown", "model")
    ]
    (message,) = [each["message"] for each in find_memory_warnings(composed)]
    assert message.endswith(".")
    assert not message.endswith(("..", ".)."))


def test_settings_of_any_kind_do_not_break_the_preview(
    client: TestClient, model: Model, dataset: Dataset, folder: Path
) -> None:
    overrides = {
        "actor_rollout_ref.rollout.n": 0,
        "data.max_prompt_length": -5,
        "actor_rollout_ref.actor.ppo_mini_batch_size": None,
    }

    composed = preview(client, model, dataset, overrides=overrides)

    assert composed["memory"]["per_gpu_bytes"] > 0
    assert find_memory_warnings(composed) == []


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("data.max_prompt_length", "many", "max_prompt_length"),
        ("data.max_prompt_length", float("inf"), "max_prompt_length"),
        ("actor_rollout_ref.actor.ppo_mini_batch_size", None, "ppo_mini_batch_size"),
        ("critic", None, "critic.fsdp"),
        ("reward", 5, "reward"),
    ],
)
def test_settings_that_tell_nothing_about_memory_are_named_in_a_warning(
    settings: Settings, model: Model, folder: Path, place: str, value: object, named: str
) -> None:
    composition = compose(
        ComposeRequest(
            recipe="grpo",
            platform="cpu",
            gpus=1,
            model_path="/models/a",
            train_path="/data/train.parquet",
            checkpoint_dir="/checkpoints",
            seed=1,
        )
    )
    *groups, last = place.split(".")
    tree = composition.config
    for name in groups:
        tree = tree[name]
    tree[last] = value

    found = estimate(
        composition,
        recipe="grpo",
        model=model,
        data_root=settings.data_root,
        platform="cpu",
        gpus=1,
        measured=None,
    )

    assert found.memory is None
    assert found.problem is not None
    assert found.problem.code == "memory_settings_unusable"
    assert named in found.problem.message


def test_a_mistake_in_the_estimate_itself_is_not_hidden(
    client: TestClient, model: Model, dataset: Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any, **_named: Any) -> None:
        raise AttributeError("a mistake of ours")

    monkeypatch.setattr("trellis_api.jobs.forecast.memory.estimate_memory", fail)

    with pytest.raises(AttributeError, match="a mistake of ours"):
        preview(client, model, dataset)


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
            started = time.process_time()
            preview(client, model, dataset)
            times.append(time.process_time() - started)
        return min(times)  # whatever else the machine does

    measure()
    with_estimate = measure()
    monkeypatch.setattr("trellis_api.jobs.submit.memory.estimate", lambda *_a, **_k: Estimated())
    without = measure()

    assert with_estimate - without < 0.005 + 0.5 * without
