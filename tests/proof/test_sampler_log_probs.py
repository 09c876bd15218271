"""Corrections for the rollout engine, run for real."""

import pytest

from .reinforcement import STEPS, ReinforcementRuns, expect_gain

pytestmark = [
    pytest.mark.proves("grpo"),
    pytest.mark.training,
    pytest.mark.timeout(1800),
    pytest.mark.variant,
]


def test_the_samplers_probabilities_may_stand_for_the_trainers(reinforcement: ReinforcementRuns) -> None:
    run = reinforcement.run("grpo", "grpo-sampler-log-probs", old_log_probs="sampler")

    expect_gain("grpo against the rollout engine's probabilities", run, reinforcement.control())
    assert run.curve("timing_s/old_log_prob").keys() == set(range(1, STEPS + 1))
    # What alarms and charts watch is measured in the updates instead.
    assert all(value > 0 for value in run.curve("actor/entropy").values())
    weights = run.curve("training/rollout_importance_weight_mean")
    assert weights.keys() == set(range(1, STEPS + 1))
    assert all(0.9 < weight < 1.1 for weight in weights.values())


def test_a_correction_weighs_tokens_that_agree_by_one(reinforcement: ReinforcementRuns) -> None:
    run = reinforcement.run("grpo", "grpo-corrected", importance_correction="token")

    weights = run.curve("rollout_corr/rollout_is_mean")
    assert len(weights) == STEPS
    assert all(0.99 < weight < 1.01 for weight in weights.values())
