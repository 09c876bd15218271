"""The Python script of the pipeline's design, line by line, to where trainings and engines would start."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis import (
    AgentLoRATrainer,
    AgentRewardConfig,
    AgentRewardModel,
    AgentRLTrainer,
    AgentSFTConfig,
    AgentTrainingEvaluator,
    RLTrainingConfig,
)
from trellis_cli import agent_evaluate, agent_train
from trellis_cli.local_run import LocalOutcome
from trellis_cli.main import app
from trellis_contracts.spec import JobSpec
from trellis_testing.stand_in_hub import StandInHub
from typer.testing import CliRunner

BASE = "Qwen/Qwen2.5-7B-Instruct"
CHAT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
ROWS: dict[str, Any] = {
    "sft": {"messages": CHAT},
    "preference": {"prompt": "1+1?", "chosen": "2", "rejected": "3"},
    "rl": {"data_source": "t", "prompt": CHAT[:1], "reward_model": {"ground_truth": "{}"}},
}
METRICS = ("tool_selection_accuracy", "plan_success_rate")


def write_rows(folder: Path) -> None:
    for name, row in ROWS.items():
        for split in ("train", "dev", "test"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / f"{split}.jsonl").write_text((json.dumps(row) + "\n") * 200)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    hub = StandInHub({"config.json": b"{}", "model.safetensors": b"weights"}, repository=BASE)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    yield hub
    hub.close()


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have begun: specs of trainings, options of evaluations."""
    seen: list[Any] = []

    def train(spec: JobSpec, **_: object) -> LocalOutcome:
        seen.append(spec)
        model = Path(spec.checkpoint_dir) / "global_step_3" / "huggingface"
        model.mkdir(parents=True)
        (model / "config.json").write_text("{}")
        (model / "model.safetensors").write_bytes(b"trained")
        return LocalOutcome(folder=str(Path(spec.attempt_dir).parent), outcome="succeeded", step=3)

    def start(module: str, options: list[str]) -> "subprocess.CompletedProcess[str]":
        if module == agent_evaluate.FORMATTER:
            write_rows(Path(options[1]))
            return subprocess.CompletedProcess(options, 0, "", "")
        seen.append(options)
        if module == agent_train.PAIR_MAKER:
            pairs = Path(options[options.index("--output") + 1])
            pairs.write_text((json.dumps(ROWS["preference"]) + "\n") * 200)
            return subprocess.CompletedProcess(options, 0, json.dumps({"pairs": 200, "prompts": 200}), "")
        found = {name: {"mean": 0.5, "std": 0.1, "count": 3} for name in METRICS}
        return subprocess.CompletedProcess(options, 0, json.dumps(found), "")

    def run(arguments: list[str]) -> Any:
        done = CliRunner().invoke(app, ["agent", *arguments, "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    data = tmp_path / "data" / "agent"
    data.mkdir(parents=True)
    (data / "agent_tools.jsonl").touch()
    monkeypatch.setenv("TRELLIS_PLATFORM", "cpu")
    monkeypatch.setattr(agent_train, "run_local", train)
    monkeypatch.setattr(agent_train, "_format", lambda _data, folder: write_rows(folder))
    monkeypatch.setattr(agent_evaluate, "_start", start)
    monkeypatch.setattr("trellis.agent_trainers._run", run)
    monkeypatch.chdir(tmp_path)
    return seen


def test_the_script_runs_to_where_training_starts(
    hub: StandInHub, begun: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark_loader = "agent_benchmark"

    sft_config = AgentSFTConfig(
        base_model="Qwen/Qwen2.5-7B-Instruct",
        num_epochs=3,
    )
    sft_trainer = AgentLoRATrainer(sft_config)
    sft_trainer.train()
    sft_trainer.save_model("./output/agent_sft")

    rl_config = RLTrainingConfig(algorithm="dpo")
    reward_model = AgentRewardModel(AgentRewardConfig())
    rl_trainer = AgentRLTrainer(
        config=rl_config,
        base_model_path="Qwen/Qwen2.5-7B-Instruct",
        sft_model_path="./output/agent_sft",
        reward_model=reward_model,
    )
    rl_trainer.train()
    rl_trainer.save_model("./output/agent_dpo")

    evaluator = AgentTrainingEvaluator(benchmark_loader)
    results = evaluator.evaluate(model=rl_trainer.model, split="test")
    print(f"Tool Selection Accuracy: {results['tool_selection_accuracy']['mean']:.2%}")
    print(f"Plan Success Rate: {results['plan_success_rate']['mean']:.2%}")

    sft, sampled, dpo, evaluation = begun
    assert (sft.recipe, sft.params["epochs"]) == ("agent_sft", 3)
    assert "snapshots" in sft.model.path
    assert (dpo.recipe, dpo.model.path) == ("agent_dpo", str(Path("output/agent_sft").resolve()))
    # The reward model ranks responses of the SFT model.
    assert sampled[sampled.index("--model") + 1] == dpo.model.path
    assert json.loads(sampled[sampled.index("--reward") + 1]) == reward_model.options
    assert evaluation[evaluation.index("--model") + 1].endswith("global_step_3/huggingface")
    assert evaluation[evaluation.index("--data") + 1].endswith("rl/test.jsonl")
    assert Path("output/agent_dpo/model.safetensors").read_bytes() == b"trained"
    assert "Tool Selection Accuracy: 50.00%" in capsys.readouterr().out
