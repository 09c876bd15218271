"""`trellis agent` for real, one command after the other: each works on what the one before it has left."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import Engine
from trellis_testing.exports import run_export
from trellis_testing.loadable_folders import MODELS, load_folders
from trellis_testing.tool_use import ToolUse, make_tool_use

pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(900),
    pytest.mark.proves("agent_sft", "agent_dpo", "agent_ppo", "agent_grpo", "agent_retrieval"),
]

TOKENS, SMALLEST_MARGIN = 48, 0.1
#: Two steps of a few short rows, and nothing measured on the way.
QUICK = {"total_steps": 2, "batch_size": 8, "validation_rows": 0, "validate_every": 0, "save_every": 0}
SAMPLED = {
    "mini_batch_size": 8,
    "micro_batch_size": 8,
    "max_response_length": TOKENS,
    "validate_before": False,
}
METRICS = {
    "tool_selection_accuracy",
    "plan_success_rate",
    "step_efficiency",
    "timing_precision",
    "end_to_end_success",
    "overall",
}


def agent(*arguments: object) -> dict[str, Any]:
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "trellis_cli", "agent", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def train(
    stage: str, output: Path, model: Path, data: Path, *options: object, **parameters: object
) -> dict[str, Any]:
    chosen = [
        part for name, value in {**QUICK, **parameters}.items() for part in ("--set", f"{name}={value}")
    ]
    ended = agent(
        "train", stage, "--output", output, "--base-model", model, "--data", data, *chosen, *options
    )
    assert (ended["outcome"], ended["total_steps"]) == ("succeeded", ended["step"])
    return ended


@pytest.fixture(scope="module")
def tool_use(tmp_path_factory: pytest.TempPathFactory) -> ToolUse:
    return make_tool_use(tmp_path_factory.mktemp("tool_use"))


@pytest.fixture(scope="module")
def taught(tool_use: ToolUse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that calls now and then."""
    rows = tool_use.rows("sft", "train", 600).path.with_suffix(".jsonl")
    ended = train(
        "sft", tmp_path_factory.mktemp("sft"), tool_use.model, rows, total_steps=80, learning_rate=5e-3
    )
    return Path(ended["hf_path"])


def prompts(tool_use: ToolUse, split: str, count: int) -> Path:
    return tool_use.rows("rl", split, count).path.with_suffix(".jsonl")


def test_a_trained_model_is_evaluated(taught: Path, tool_use: ToolUse, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    data = prompts(tool_use, "dev", 6)

    found = agent("evaluate", "--model", taught, "--data", data, "--max-tokens", TOKENS, "--output", report)

    assert set(found) == METRICS
    assert all(0 <= each["mean"] <= 1 for each in found.values())
    assert found["overall"]["count"] == len(data.read_text().splitlines())
    assert report.stat().st_size > 0


def test_pairs_of_its_own_responses_are_what_dpo_trains_on(
    taught: Path, tool_use: ToolUse, tmp_path: Path
) -> None:
    data, output = prompts(tool_use, "train", 30), tmp_path / "pairs.jsonl"

    made = agent("pairs", "--model", taught, "--data", data, "--max-tokens", TOKENS, "--output", output)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    ended = train("dpo", tmp_path / "dpo", taught, output, batch_size=min(8, len(rows)))

    assert made["pairs"] == len(rows) > 0
    assert all(row["margin"] >= SMALLEST_MARGIN for row in rows)
    assert Path(ended["hf_path"], "model.safetensors").exists()


def test_dpo_samples_the_pairs_that_it_trains_on(taught: Path, tool_use: ToolUse, tmp_path: Path) -> None:
    data, output = prompts(tool_use, "train", 30), tmp_path / "dpo"

    ended = train("dpo", output, taught, data, "--num-samples", 4, batch_size=1)

    exported = agent("export", output, "--output", tmp_path / MODELS / "preferring")
    rows = [json.loads(line) for line in (output / "pairs.jsonl").read_bytes().splitlines()]
    assert len(rows) > 0
    assert all(row["margin"] >= SMALLEST_MARGIN for row in rows)
    assert load_folders(output, ended) == {"training state", "model of a checkpoint"}
    assert load_folders(tmp_path / MODELS, exported) == {"exported model"}


@pytest.mark.parametrize(("stage", "options"), [("ppo", ()), ("grpo", ("--num-samples", 4))])
def test_reinforcement_goes_on_from_it(
    stage: str, options: tuple[object, ...], taught: Path, tool_use: ToolUse, tmp_path: Path
) -> None:
    ended = train(stage, tmp_path / stage, taught, prompts(tool_use, "train", 30), *options, **SAMPLED)

    assert ended["step"] == 2
    assert ended["metrics"]["actor/grad_norm"] > 0
    assert load_folders(tmp_path / stage, ended) == {"training state", "policy of a checkpoint"}


def test_a_retriever_is_trained_and_its_checkpoint_becomes_a_model(tool_use: ToolUse, tmp_path: Path) -> None:
    ended = train(
        "retrieval",
        tmp_path / "retrieval",
        tool_use.model,
        tool_use.folder / "retrieval" / "train.jsonl",
        validation_rows=16,
        validate_every=2,
    )

    exported = run_export(
        tmp_path / "export", Path(ended["checkpoint"]), base=tool_use.model, step=2, engine=Engine.RETRIEVAL
    )

    assert {"eval/recall@10", "baseline/bm25/recall@10"} <= set(ended["metrics"])
    assert exported.exit_code == 0, exported.log
    assert load_folders(tmp_path / "retrieval", ended) == {"training state", "model of a checkpoint"}
    assert load_folders(exported.output) == {"exported model"}
