"""Every RL recipe, run for real: it is rewarded more than a run that samples alike and stays as it is."""

import math
import statistics

import pytest
from trellis_testing.watched_metrics import watched_metrics

from .reinforcement import PARAMS, STEPS, ReinforcementRuns, expect_gain, run_of

pytestmark = [pytest.mark.training, pytest.mark.timeout(1800)]

#: With a critic, with a KL penalty in the loss, and with one in the reward.
WATCHED = ("ppo", "grpo", "reinforce_plus_plus")


@pytest.mark.parametrize("recipe", list(PARAMS))
def test_training_raises_the_mean_reward(recipe: str, reinforcement: ReinforcementRuns) -> None:
    expect_gain(recipe, run_of(reinforcement, recipe), reinforcement.control())


@pytest.mark.proves("grpo")
def test_the_control_stays_as_it_is(reinforcement: ReinforcementRuns) -> None:
    control = reinforcement.control()

    # Its updates are computed, and move nothing: every step starts at the same policy.
    assert all(value > 0 for value in control.curve("actor/grad_norm").values())
    assert all(abs(value) < 1e-4 for value in control.curve("actor/ppo_kl").values())


@pytest.mark.proves("grpo")
def test_its_processes_are_forked_from_one(reinforcement: ReinforcementRuns) -> None:
    assert "without the fork server" not in reinforcement.control().log


@pytest.mark.parametrize("recipe", WATCHED)
def test_a_run_logs_what_alarms_watch(recipe: str, reinforcement: ReinforcementRuns) -> None:
    run = run_of(reinforcement, recipe)

    for key in watched_metrics(run.spec.engine, recipe, run.config):
        values = run.curve(key)
        assert len(values) == STEPS, key
        assert all(map(math.isfinite, values.values())), key
    # Rollout engine and trainer agree, after every update too.
    weights = run.curve("training/rollout_importance_weight_mean")
    assert len(weights) == STEPS
    assert all(0.99 < weight < 1.01 for weight in weights.values())
    shares = run.curve("training/uniform_group_fraction")
    assert len(shares) == STEPS
    assert all(0 < share < 1 for share in shares.values())


@pytest.mark.proves("ppo")
def test_the_critic_of_ppo_learns_to_foresee_the_reward(reinforcement: ReinforcementRuns) -> None:
    explained = list(run_of(reinforcement, "ppo").curve("critic/vf_explained_var").values())

    # An untrained critic explains nothing; the variance left is compared, as it starts far below 0.
    assert len(explained) == STEPS
    assert statistics.fmean(explained[-3:]) > explained[0]
    assert max(explained[-3:]) > 0


@pytest.mark.proves("gspo")
def test_gspo_clips_whole_sequences(reinforcement: ReinforcementRuns) -> None:
    """Its clip range of some 1e-4 is met as soon as the second mini-batch of a step."""
    run = run_of(reinforcement, "gspo")

    assert all(0 < share < 1 for share in run.curve("actor/pg_clipfrac").values())


@pytest.mark.proves("grpo")
def test_the_kl_penalty_measures_the_way_from_the_reference_model(reinforcement: ReinforcementRuns) -> None:
    penalty = run_of(reinforcement, "grpo").curve("actor/kl_loss")

    assert len(penalty) == STEPS
    assert all(math.isfinite(value) and value >= 0 for value in penalty.values())
    # The first step begins at the reference, and the policy goes away from it.
    assert max(penalty.values()) == penalty[STEPS] > 2 * penalty[1]
