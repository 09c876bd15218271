"""`trellis agent train --dry-run` counts rows, and brings no weights and makes no responses for that."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_cli import agent_sources, agent_train
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.main import app
from trellis_contracts.spec import JobSpec
from trellis_testing.stand_in_hub import StandInHub
from typer.testing import CliRunner

CHAT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
ROWS = {
    "sft": {"messages": CHAT},
    "dpo": {"data_source": "t", "prompt": CHAT[:1], "reward_model": {"ground_truth": "2"}},
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    hub = StandInHub({"config.json": b"{}", "model.safetensors": b"weights"}, repository="team/tiny")
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    yield hub
    hub.close()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[JobSpec]:
    """The jobs whose rows would have been counted; what needs weights fails."""
    found: list[JobSpec] = []

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("weights are needed")

    monkeypatch.setenv("TRELLIS_PLATFORM", "cpu")
    monkeypatch.setattr(agent_train, "show_rows", lambda spec, **_: found.append(spec))
    monkeypatch.setattr(agent_train, "run_module", refuse)
    monkeypatch.setattr(agent_sources, "_merge", refuse)
    return found


def count(folder: Path, stage: str, model: str, *options: str) -> Any:
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(ROWS[stage]) + "\n" for _ in range(200)))
    command = ["agent", "train", stage, "--data", str(data), "--output", str(folder / "out"), "--dry-run"]
    return CliRunner().invoke(app, [*command, "--base-model", model, *options])


def test_of_a_model_of_the_hub_only_the_configuration_is_downloaded(
    tmp_path: Path, hub: StandInHub, counted: list[JobSpec]
) -> None:
    result = count(tmp_path, "sft", "team/tiny")

    assert result.exit_code == 0, result.output
    assert [path.name for path in Path(counted[0].model.path).iterdir()] == ["config.json"]


def test_an_adapter_is_not_merged(tmp_path: Path, counted: list[JobSpec]) -> None:
    (tmp_path / "run/checkpoints/global_step_3/lora_adapter").mkdir(parents=True)
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text("{}")
    attempt = tmp_path / "run/attempt-1"
    attempt.mkdir()
    (attempt / "spec.json").write_text(json.dumps({"model": {"path": str(base)}}))

    result = count(tmp_path, "sft", str(tmp_path / "run"))

    assert result.exit_code == 0, f"{result.output} {result.exception}"
    assert counted[0].model.path == str(base)


def test_pairs_that_are_still_to_be_sampled_are_not_counted(tmp_path: Path, counted: list[JobSpec]) -> None:
    result = count(tmp_path, "dpo", "team/tiny", "--num-samples", "4")

    assert isinstance(result.exception, Problem)
    assert "--num-samples" in str(result.exception)
    assert result.exception.exit_code == ExitCode.USAGE
    assert counted == []
