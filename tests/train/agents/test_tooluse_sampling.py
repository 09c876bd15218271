"""Real responses of a tiny model: `trellis agent evaluate` and `trellis agent pairs` without the platform."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.recipe import DataFormat
from trellis_testing.engine_runs import Rows, compose_job
from trellis_train.agents.tooluse.evaluator.metrics import METRICS
from trellis_train.data.prepare import BadData
from trellis_train.starter.__main__ import main as make_starter

pytestmark = [pytest.mark.training, pytest.mark.timeout(300)]
TOOL = {
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "returns": {"shape": "value", "object": "weather", "measure": "degrees", "minimum": 0, "maximum": 9},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A starter model that was taught nothing, and rows in the layout of an environment."""
    place = tmp_path_factory.mktemp("sampling")
    make_starter(["--model", str(place / "model"), "--seed", "0"])
    truth = {"steps": [{"name": "weather", "arguments": {"city": "Oslo"}}], "available_tools": ["weather"]}
    rows = [
        {
            "prompt": [{"role": "user", "content": f"How warm is it in Oslo on day {day}?"}],
            "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)},
            "extra_info": {"index": day, "tools": json.dumps([TOOL])},
        }
        for day in range(3)
    ]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "verl.jsonl").write_text(
        "".join(json.dumps({"data_source": "tools", **row}) + "\n" for row in rows)
    )
    manifest = {"kind": "toolbox", "datasets": {"test": "rows.jsonl", "train": "rows.jsonl"}}
    (place / "environment.json").write_text(json.dumps(manifest))
    return place


def trellis(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "trellis_cli", "agent", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


def test_a_model_is_measured_on_the_rows_of_an_environment(folder: Path) -> None:
    samples = folder / "samples.jsonl"

    done = trellis(
        "evaluate", "--model", str(folder / "model"), "--data", str(folder),
        "--max-tokens", "16", "--output", str(samples), "--json",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert set(found) == set(METRICS)
    assert {each["count"] for each in found.values()} == {3}
    assert found["end_to_end_success"]["mean"] == 0.0
    assert all(json.loads(line)["responses"][0] for line in samples.read_text().splitlines())


def test_four_different_responses_to_each_prompt_are_sampled_for_pairs(folder: Path) -> None:
    done = trellis(
        "pairs", "--model", str(folder / "model"), "--data", str(folder / "rows.jsonl"),
        "--max-tokens", "12", "--output", str(folder / "pairs.jsonl"), "--json",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # Untaught, it calls nothing: its responses differ as texts, and not in what they are worth.
    assert (found["prompts"], found["same"], found["close"], found["pairs"]) == (3, 0, 3, 0)


@pytest.mark.timeout(900)
def test_a_job_whose_rows_are_prompts_samples_its_model(folder: Path, tmp_path: Path) -> None:
    # The sampler itself, on the Parquet file that a job prepares; untaught, the model gives no pair.
    with pytest.raises(BadData, match="no prompt has two responses with different rewards"):
        compose_job(
            tmp_path / "job",
            recipe="agent_dpo",
            model=str(folder / "model"),
            rows=Rows.from_json_lines(folder / "verl.jsonl", DataFormat.VERL_RL),
            params={"validation_rows": 0, "batch_size": 1, "num_samples": 2},
        )

    (left,) = (tmp_path / "job").parent.glob("**/sampled-pairs/train.log")
    assert json.loads(left.read_text().splitlines()[-1])["prompts"] == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--model", "none", "--data", "{folder}"], "none is neither a model folder"),
        (["--model", "{folder}/model", "--data", "{folder}/model"], "contains no rows"),
        (["--model", "{folder}/model", "--data", "{folder}", "--metrics", "f1"], "unknown metric: f1"),
    ],
)
def test_what_cannot_be_measured_is_told_in_a_sentence(
    folder: Path, arguments: list[str], reason: str
) -> None:
    done = trellis("evaluate", *(each.format(folder=folder) for each in arguments))

    assert done.returncode == 2, done.stderr
    assert reason in done.stderr
