"""Preference recipes on a pretrained model: margins on pairs held out rise, a reward model ranks them."""

from pathlib import Path
from typing import Any

import pytest
from trellis_testing.engine_runs import EngineRun, Rows, run_engine
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
    "learning_rate": 2e-5,
}
ADAPTER: dict[str, Any] = {"lora_rank": 16, "lora_alpha": 32, "learning_rate": 5e-4}

#: ORPO has no reference: its loss is that of the chosen answers, with the log odds at this weight beside it
#: (equation 6 of https://arxiv.org/abs/2403.07691), so it takes the learning rate of fine-tuning.
ODDS: dict[str, Any] = {"learning_rate": 5e-5, "lambda": 1.0}


def train(
    folder: Path, pretrained: Pretrained, rows: tuple[Rows, Rows], recipe: str, **params: Any
) -> EngineRun:
    job = pretrained.compose(folder, recipe, rows, {**COMMON, **params})
    return run_engine(job, timeout_s=1500)


@pytest.mark.parametrize(
    ("recipe", "params"),
    [("dpo", {}), ("dpo", ADAPTER), ("simpo", {}), ("kto", {})],
    ids=["dpo", "dpo_lora", "simpo", "kto"],
)
def test_margins_on_held_out_pairs_rise(
    recipe: str, params: dict[str, Any], pretrained: Pretrained, tmp_path: Path
) -> None:
    rows = pretrained.labelled if recipe == "kto" else pretrained.pairs

    run = train(tmp_path / "run", pretrained, rows, recipe, **params)

    margins = run.curve("eval_rewards/margins")
    name = f"{recipe} (adapter)" if params else recipe
    report_proof(
        name, measure="held-out margin", control=margins[0], trained=margins[STEPS], seconds=run.seconds
    )
    assert margins[STEPS] > margins[0] + 0.05


@pytest.mark.proves("orpo")
def test_orpo_lowers_the_loss_and_raises_the_log_odds(pretrained: Pretrained, tmp_path: Path) -> None:
    run = train(tmp_path / "run", pretrained, pretrained.pairs, "orpo", **ODDS)

    loss, odds = run.curve("eval_nll_loss"), run.curve("eval_log_odds_chosen")
    report_proof(
        "orpo", measure="held-out log odds", control=odds[0], trained=odds[STEPS], seconds=run.seconds
    )
    assert loss[STEPS] < loss[0] - 0.3
    assert odds[STEPS] > odds[0] + 0.05


@pytest.mark.proves("reward_model")
def test_a_reward_model_learns_to_rank_held_out_pairs(pretrained: Pretrained, tmp_path: Path) -> None:
    run = train(tmp_path / "run", pretrained, pretrained.pairs, "reward_model")

    ranked = run.curve("eval_accuracy")
    report_proof(
        "reward_model",
        measure="held-out accuracy",
        control=ranked[0],
        trained=ranked[STEPS],
        seconds=run.seconds,
    )
    assert ranked[STEPS] > max(0.75, ranked[0] + 0.1)
