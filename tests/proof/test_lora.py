"""GRPO with LoRA, run for real: the adapter learns and reaches the rollout engine, the base is unchanged."""

from pathlib import Path

import pytest
from trellis_testing.adapters import expect_only_the_adapter_learned
from trellis_testing.engine_runs import EngineRun

from .reinforcement import (
    SAVED_STEP,
    ReinforcementRuns,
    expect_gain,
    expect_same_steps,
    run_with_adapter,
)

pytestmark = [
    pytest.mark.proves("grpo"),
    pytest.mark.training,
    pytest.mark.timeout(1800),
    pytest.mark.variant,
]


@pytest.fixture(scope="module")
def run(reinforcement: ReinforcementRuns) -> EngineRun:
    return run_with_adapter(reinforcement)


def test_training_raises_the_mean_reward(run: EngineRun, reinforcement: ReinforcementRuns) -> None:
    expect_gain("grpo with LoRA", run, reinforcement.control())


def test_the_sampler_has_the_adapter_of_every_step(run: EngineRun) -> None:
    weights = run.curve("training/rollout_importance_weight_mean")

    assert all(0.99 < weight < 1.01 for weight in weights.values())
    assert all(value < 0.02 for value in run.curve("training/rollout_probs_diff_max").values())


def test_only_the_adapter_changed(run: EngineRun) -> None:
    expect_only_the_adapter_learned(Path(run.checkpoint(SAVED_STEP)["path"]), Path(run.spec.model.path))


def test_resumed_it_goes_on_as_it_was(run: EngineRun, reinforcement: ReinforcementRuns) -> None:
    resumed = reinforcement.resume(run, SAVED_STEP, total_steps=SAVED_STEP + 2)

    expect_same_steps(resumed, run)
