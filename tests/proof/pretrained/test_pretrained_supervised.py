"""Supervised recipes on a pretrained model: the loss on rows held out falls."""

from pathlib import Path
from typing import Any

import pytest
from trellis_testing.engine_runs import EngineRun, run_engine
from trellis_testing.pretrained import Pretrained
from trellis_testing.proof_report import report_proof

pytestmark = [pytest.mark.training, pytest.mark.timeout(1800)]
STEPS = 8
COMMON: dict[str, Any] = {
    "total_steps": STEPS,
    "batch_size": 8,
    "max_length": 192,
    "validate_every": STEPS,
    "save_every": 0,
}
#: Of the losses in nats per token; the first steps take more than half of what there is to learn.
LEAST_GAIN = 0.3


def train(folder: Path, pretrained: Pretrained, recipe: str, **params: Any) -> EngineRun:
    rows = pretrained.documents if recipe == "cpt" else pretrained.lessons
    job = pretrained.compose(folder, recipe, rows, {**COMMON, **params})
    return run_engine(job, timeout_s=1500)


@pytest.mark.parametrize(
    ("recipe", "params"),
    [
        ("sft", {"learning_rate": 5e-5}),
        ("sft", {"learning_rate": 1e-3, "lora_rank": 16, "lora_alpha": 32}),
        ("cpt", {"learning_rate": 5e-5, "batch_size": 4}),
    ],
    ids=["sft", "sft_lora", "cpt"],
)
def test_the_held_out_loss_falls(
    recipe: str, params: dict[str, Any], pretrained: Pretrained, tmp_path: Path
) -> None:
    before = train(
        tmp_path / "control",
        pretrained,
        recipe,
        **{**params, "learning_rate": 0, "total_steps": 1, "validate_every": 1},
    )
    after = train(tmp_path / "trained", pretrained, recipe, **params)

    losses = before.curve("val/loss")[1], after.curve("val/loss")[STEPS]
    name = f"{recipe} (adapter)" if "lora_rank" in params else recipe
    report_proof(name, measure="held-out loss", control=losses[0], trained=losses[1], seconds=after.seconds)
    assert losses[1] < losses[0] - LEAST_GAIN
