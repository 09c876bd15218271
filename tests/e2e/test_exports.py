"""From an adapter to a model that the next training starts from, and on: one request a training."""

from typing import Any

import pytest

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]


def test_an_adapter_is_merged_and_the_next_training_starts_from_it(
    rig: Any, adapter_training: str, second_training: str
) -> None:
    sft, grpo = adapter_training, second_training
    taught, reinforced = rig.promised_model(sft), rig.promised_model(grpo)
    model, rows, questions = rig.starter()["model"], rig.starter()["sft"], rig.job(grpo)["dataset"]["id"]

    assert (taught["name"], taught["lineage"]["form"]) == ("taught", "merged")
    assert taught["parameter_count"] == rig.client.get(f"/models/{model}")["parameter_count"]
    assert taught["has_chat_template"]
    assert taught["sha256"] != reinforced["sha256"]
    lineage = rig.client.get(f"/models/{reinforced['id']}/lineage")
    steps = {(edge["source"], edge["target"]): edge["step"] for edge in lineage["edges"]}
    assert steps[model, sft] is None
    assert steps[sft, taught["id"]] == rig.job(sft)["params"]["total_steps"]
    assert steps[grpo, reinforced["id"]] == rig.job(grpo)["params"]["total_steps"]
    assert {rows, questions} <= {node["id"] for node in lineage["nodes"]}
    # What an export says of itself is kept like that of any job.
    export = rig.job(rig.job(sft)["export_as"]["job"]["id"])
    assert export["progress"]["fraction"] == 1.0
    assert any("loads and runs" in line for line in rig.stored_lines(export["id"]))
    rig.expect_nothing_left(grpo)


def test_a_person_exports_the_adapter_alone_and_removes_the_checkpoint(
    rig: Any, adapter_training: str
) -> None:
    sft = adapter_training
    step = rig.job(sft)["params"]["total_steps"]

    body = {"name": "the adapter", "form": "adapter"}
    export = rig.client.post(f"/jobs/{sft}/checkpoints/{step}/export", body)
    rig.wait_for_state(export["id"], "succeeded")
    rig.client.delete(f"/jobs/{sft}/checkpoints/{step}")

    model = rig.client.get(f"/models/{rig.job(export['id'])['exported_model']['id']}")
    assert [warning["code"] for warning in model["warnings"]] == ["adapter_only"]
    refused = rig.client._http.post(
        "/api/v1/jobs",
        json={"name": "x", "recipe": "sft", "model": model["id"], "dataset": rig.starter()["sft"]},
    )
    assert refused.json()["error"] == "model_is_adapter"
    assert rig.client.get(f"/jobs/{sft}/checkpoints")["items"][0]["is_pruned"]
