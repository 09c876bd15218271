"""Preferences uploaded, learned from with DPO over the API, and the outcome registered as a model."""

from pathlib import Path
from typing import Any

import pytest
from trellis_cli import demo
from trellis_train.starter.preferences import write_preferences

pytestmark = [pytest.mark.e2e, pytest.mark.train, pytest.mark.timeout(600)]
STEPS = 12


def test_dpo_learns_from_uploaded_pairs(rig: Any, tmp_path: Path) -> None:
    files = write_preferences(tmp_path, 2)
    datasets = {
        name: rig.client.upload("/datasets", files[f"preference_{name}"], {"name": f"preferences, {name}"})
        for name in ("train", "validation")
    }
    assert {each["format"] for each in datasets.values()} == {"preference"}

    request = {
        "name": "DPO",
        "recipe": "dpo",
        "preset": demo.PRESET,
        "model": rig.starter()["model"],
        "dataset": datasets["train"]["id"],
        "validation_dataset": datasets["validation"]["id"],
        "params": {"total_steps": STEPS, "validate_every": 6},
    }
    job = str(rig.client.post("/jobs", request)["id"])
    rig.wait_for_state(job, "succeeded")

    metrics = rig.stored_metrics(job)
    accuracy = {step: value for (key, step), value in metrics.items() if key == "eval_rewards/accuracies"}
    assert list(accuracy) == [0, 6, 12]
    # Against itself a model prefers nothing; a model of random weights soon learns not to hedge.
    assert accuracy[0] == 0
    assert accuracy[12] > 0.6
    (checkpoint,) = rig.client.pages(f"/jobs/{job}/checkpoints")
    assert checkpoint["step"] == STEPS
    source = {"kind": "checkpoint", "job_id": job, "step": STEPS}
    model = rig.client.post("/models", {"name": "prefers sums", "source": source})
    assert model["state"] == "ready"
    assert model["has_chat_template"]
    rig.expect_nothing_left(job)
