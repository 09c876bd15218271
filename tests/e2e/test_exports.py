"""From an adapter to a model that the next training starts from, and on: one request a training."""

from typing import Any

import pytest
from trellis_cli import demo

pytestmark = [pytest.mark.e2e, pytest.mark.train, pytest.mark.timeout(900)]
SFT_STEPS, GRPO_STEPS = 3, 2


def launch(rig: Any, recipe: str, model: str, dataset: str, export_as: str, **params: Any) -> str:
    request = {
        "name": f"{recipe} to {export_as}",
        "recipe": recipe,
        "preset": demo.PRESET,
        "model": model,
        "dataset": dataset,
        "params": {"validate_every": 0, "save_every": 0, **params},
        "export_as": {"name": export_as},
    }
    return str(rig.client.post("/jobs", request)["id"])


def wait_for_model(rig: Any, job_id: str) -> dict[str, Any]:
    """The model that was promised with a training."""
    job = rig.wait_for_state(job_id, "succeeded")
    assert job["export_as"]["problem"] is None
    export = rig.wait_for_state(job["export_as"]["job"]["id"], "succeeded")
    model: dict[str, Any] = rig.client.get(f"/models/{export['exported_model']['id']}")
    assert model["state"] == "ready"
    return model


def test_an_adapter_is_merged_and_the_next_training_starts_from_it(rig: Any) -> None:
    starter = rig.starter()

    sft = launch(rig, "sft", starter["model"], starter["sft"], "taught", total_steps=SFT_STEPS, lora_rank=4)
    taught = wait_for_model(rig, sft)
    grpo = launch(
        rig, "grpo", taught["id"], starter["rl_train"], "reinforced",
        total_steps=GRPO_STEPS, validate_before=False,
    )  # fmt: skip
    reinforced = wait_for_model(rig, grpo)

    assert (taught["name"], taught["lineage"]["form"]) == ("taught", "merged")
    assert taught["parameter_count"] == rig.client.get(f"/models/{starter['model']}")["parameter_count"]
    assert taught["has_chat_template"]
    assert taught["sha256"] != reinforced["sha256"]
    lineage = rig.client.get(f"/models/{reinforced['id']}/lineage")
    steps = {(edge["source"], edge["target"]): edge["step"] for edge in lineage["edges"]}
    assert steps[starter["model"], sft] is None
    assert steps[sft, taught["id"]] == SFT_STEPS
    assert steps[grpo, reinforced["id"]] == GRPO_STEPS
    assert {starter["sft"], starter["rl_train"]} <= {node["id"] for node in lineage["nodes"]}
    # What an export says of itself is kept like that of any job.
    export = rig.job(rig.job(sft)["export_as"]["job"]["id"])
    assert export["progress"]["fraction"] == 1.0
    assert any("it loads and computes" in line for line in rig.stored_lines(export["id"]))
    rig.expect_nothing_left(grpo)


def test_a_person_exports_the_adapter_alone_and_removes_the_checkpoint(rig: Any) -> None:
    starter = rig.starter()
    sft = rig.launch("sft", "an adapter", total_steps=1, lora_rank=4)
    rig.wait_for_state(sft, "succeeded")

    body = {"name": "the adapter", "form": "adapter"}
    export = rig.client.post(f"/jobs/{sft}/checkpoints/1/export", body)
    rig.wait_for_state(export["id"], "succeeded")
    rig.client.delete(f"/jobs/{sft}/checkpoints/1")

    model = rig.client.get(f"/models/{rig.job(export['id'])['exported_model']['id']}")
    assert [warning["code"] for warning in model["warnings"]] == ["adapter_only"]
    refused = rig.client._http.post(
        "/api/v1/jobs",
        json={"name": "x", "recipe": "sft", "model": model["id"], "dataset": starter["sft"]},
    )
    assert refused.json()["error"] == "model_is_adapter"
    assert rig.client.get(f"/jobs/{sft}/checkpoints")["items"][0]["is_pruned"]
