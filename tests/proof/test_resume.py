"""An RL run resumed from a checkpoint takes the very steps of one that was never stopped."""

import pytest
from trellis_testing.engine_runs import EngineRun

from .reinforcement import SAVED_STEP, ReinforcementRuns, answers, expect_same_steps, run_of

pytestmark = [pytest.mark.proves("ppo"), pytest.mark.training, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def run(reinforcement: ReinforcementRuns) -> EngineRun:
    return run_of(reinforcement, "ppo")


@pytest.fixture(scope="module")
def resumed(run: EngineRun, reinforcement: ReinforcementRuns) -> EngineRun:
    return reinforcement.resume(run, SAVED_STEP, total_steps=SAVED_STEP + 2)


def test_it_goes_on_with_the_next_step(resumed: EngineRun) -> None:
    assert list(resumed.curve("critic/score/mean")) == [SAVED_STEP + 1, SAVED_STEP + 2]


def test_the_same_prompts_are_answered_with_the_same_words(run: EngineRun, resumed: EngineRun) -> None:
    for step in (SAVED_STEP + 1, SAVED_STEP + 2):
        assert answers(resumed, step) == answers(run, step)


def test_losses_gradients_and_values_are_the_same(run: EngineRun, resumed: EngineRun) -> None:
    """Weights and optimizers of actor and critic went on as they were: two steps show it, not one."""
    expect_same_steps(resumed, run)
