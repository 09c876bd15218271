"""From a model that knows nothing to one that adds: uploaded, trained by SFT, then by GRPO, over the API."""

import os
from pathlib import Path
from typing import Any

import pytest
from trellis_cli import demo
from trellis_cli.services.platform import REPOSITORY_ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.train, pytest.mark.timeout(900)]

REQUIRED_GAIN = 0.15
DEFAULT_BENCHMARK_DIR = REPOSITORY_ROOT.parent / "shared" / "data"


def test_grpo_learns_from_where_sft_left_it(rig: Any, demonstration: dict[str, Any]) -> None:
    sft, grpo = demonstration["jobs"]
    print(demonstration)

    assert demonstration["accuracy_after"] >= demonstration["accuracy_before"] + REQUIRED_GAIN
    # The model that GRPO started from is the checkpoint that SFT left.
    model = rig.client.get(f"/models/{rig.job(grpo)['model']['id']}")
    assert model["source"]["job_id"] == sft
    # What a run must leave behind is there.
    assert rig.client.get(f"/jobs/{grpo}/checkpoints")["items"][0]["step"] == demo.GRPO_PARAMS["total_steps"]
    assert rig.client.get(f"/jobs/{grpo}/rollouts")["rollouts"]
    assert rig.client.get(f"/jobs/{grpo}/manifest")["manifest"]


def test_grpo_runs_on_the_real_gsm8k(rig: Any) -> None:
    file = Path(os.environ.get("TRELLIS_BENCHMARK_DIR", DEFAULT_BENCHMARK_DIR)) / "gsm8k" / "train.jsonl"
    if not file.is_file():
        pytest.skip(f"{file} is not there (TRELLIS_BENCHMARK_DIR names the folder)")
    rows = len(file.read_bytes().splitlines())

    dataset = rig.upload(file, "gsm8k")
    request = {
        "name": "GSM8K",
        "recipe": "grpo",
        "preset": demo.PRESET,
        "model": rig.starter()["model"],
        "dataset": dataset["id"],
        "params": {
            "reward": "gsm8k",
            "total_steps": 2,
            "batch_size": 8,
            "mini_batch_size": 8,
            "max_prompt_length": 1024,
            "max_response_length": 32,
            "validate_before": False,
            "validate_every": 0,
            "save_every": 0,
        },
    }
    job = str(rig.client.post("/jobs", request)["id"])
    rig.wait_for_state(job, "succeeded")

    assert dataset["row_count"] == rows
    (series,) = rig.client.get(f"/jobs/{job}/metrics", keys="critic/score/mean")["series"]
    assert series["steps"] == [1, 2]
    (first, *_) = rig.client.get(f"/jobs/{job}/rollouts", step=1)["rollouts"]
    # The answer that is scored against was cut out of the worked solution.
    assert first["ground_truth"].replace(",", "").replace(".", "").lstrip("-").isdigit()
