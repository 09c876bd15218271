"""From a model that knows nothing to one that adds: uploaded, trained by SFT, then by GRPO, over the API."""

from typing import Any

import pytest
from trellis_cli.demo import starter as demo
from trellis_contracts.namespaces import find_problem
from trellis_testing.benchmark_sets import GSM8K, needs_sets

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]

REQUIRED_GAIN = 0.15


def test_grpo_learns_from_where_sft_left_it(rig: Any, demonstration: dict[str, Any]) -> None:
    sft, grpo = demonstration["jobs"]
    print(demonstration)

    assert demonstration["accuracy_after"] >= demonstration["accuracy_before"] + REQUIRED_GAIN
    # The model that GRPO started from is the checkpoint that SFT left.
    model = rig.client.get(f"/models/{rig.job(grpo)['model']['id']}")
    assert model["source"]["job_id"] == sft
    # What a run must leave behind is there.
    assert rig.client.get(f"/jobs/{grpo}/checkpoints")["items"][0]["step"] == demo.GRPO_PARAMS["total_steps"]
    assert rig.client.get(f"/jobs/{grpo}/rollouts")["items"]
    # Both ran in namespaces of their own, where the machine permits that.
    manifests = [rig.client.get(f"/jobs/{job}/manifest")["manifest"] for job in (sft, grpo)]
    assert {manifest["isolation"] for manifest in manifests} == {find_problem() or "on"}


@needs_sets(GSM8K)
def test_grpo_runs_on_the_real_gsm8k(rig: Any, second_training: str) -> None:
    dataset = rig.client.get(f"/datasets/{rig.job(second_training)['dataset']['id']}")
    assert dataset["row_count"] == len(GSM8K["train"].read_bytes().splitlines())
    (series,) = rig.client.get(f"/jobs/{second_training}/metrics", keys="critic/score/mean")["series"]
    assert series["steps"] == [1, 2]
    (first, *_) = rig.client.get(f"/jobs/{second_training}/rollouts", step=1)["items"]
    # The answer that is scored against was cut out of the worked solution.
    assert first["ground_truth"].replace(",", "").replace(".", "").lstrip("-").isdigit()
