"""Advantages as verl computes them for each recipe, against the papers' formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig
from trellis_train.hooks.algorithms import correct_estimators
from trellis_train.hooks.remax import GreedyBaseline

from . import references as paper
from .conftest import RL_RECIPES, configure
from .references import Array, Batch, make_batch

#: Parameters whose default hides them.
PARAMS: dict[str, dict[str, Any]] = {
    "ppo": {"gamma": 0.95, "gae_lambda": 0.9, "kl_in_reward": True, "kl_reward_coefficient": 0.05},
    "reinforce_plus_plus": {"gamma": 0.97, "kl_reward_coefficient": 0.05},
    "rloo": {"kl_reward_coefficient": 0.05},
    "remax": {"kl_reward_coefficient": 0.05},
}
FORMULAS: dict[str, Callable[[Batch, Array, DictConfig], Array]] = {
    **dict.fromkeys(
        ("grpo", "gspo", "dapo", "cispo", "sapo"),
        lambda batch, rewards, _: paper.group_relative(batch, rewards, by_deviation=True),
    ),
    "dr_grpo": lambda batch, rewards, _: paper.group_relative(batch, rewards, by_deviation=False),
    "rloo": lambda batch, rewards, _: paper.leave_one_out(batch, rewards),
    "opo": lambda batch, rewards, _: paper.optimal_baseline(batch, rewards),
    "remax": lambda batch, rewards, _: paper.greedy_baseline(batch, rewards),
    "gpg": lambda batch, rewards, _: paper.accurate_group_gradient(batch, rewards),
    "reinforce_plus_plus": lambda batch, rewards, config: paper.globally_normalised(
        batch, rewards, config.algorithm.gamma
    ),
    "reinforce_plus_plus_baseline": lambda batch, rewards, _: paper.normalised_after_group(batch, rewards),
    "ppo": lambda batch, rewards, config: paper.generalised(
        batch, rewards, config.algorithm.gamma, config.algorithm.lam
    )[0],
}


class NoTrainer:
    """Stands below the mixin, which asks nothing of it here."""


class Trainer(GreedyBaseline, NoTrainer):
    """Holds the baselines that a step has found."""


def engines_advantages(config: DictConfig, batch: Batch) -> tuple[Array, Array]:
    """Advantages and returns the way verl's V1 trainer comes to them, KL penalty included."""
    from verl.protocol import DataProto
    from verl.trainer.ppo import core_algos
    from verl.trainer.ppo.ray_trainer import apply_kl_penalty
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

    tensors = {
        "token_level_scores": batch.rewards,
        "response_mask": batch.mask,
        "old_log_probs": batch.old,
        "ref_log_prob": batch.reference,
        "values": batch.values,
    }
    data = DataProto.from_dict(
        tensors={name: torch.tensor(value, dtype=torch.float32) for name, value in tensors.items()},
        non_tensors={"uid": np.array(batch.prompts, dtype=object)},
    )
    data.batch["token_level_rewards"] = data.batch["token_level_scores"]
    if config.algorithm.use_kl_in_reward:
        controller = core_algos.get_kl_controller(config.algorithm.kl_ctrl)
        data, _ = apply_kl_penalty(data, controller, config.algorithm.kl_penalty)
    correct_estimators(config)
    if config.algorithm.adv_estimator == "remax":
        trainer = Trainer()
        trainer._baselines = batch.greedy
        core_algos.ADV_ESTIMATOR_REGISTRY["remax"] = trainer._estimate
    data = compute_advantage_for_multi_trajectories(
        data,
        batch_keys=[f"{prompt}_{row}_0" for row, prompt in enumerate(batch.prompts)],
        adv_estimator=config.algorithm.adv_estimator,
        gamma=config.algorithm.gamma,
        lam=config.algorithm.lam,
        num_repeat=config.actor_rollout_ref.rollout.n,
        norm_adv_by_std_in_grpo=config.algorithm.norm_adv_by_std_in_grpo,
        config=config.algorithm,
    )
    return data.batch["advantages"].double().numpy(), data.batch["returns"].double().numpy()


def papers_rewards(config: DictConfig, batch: Batch) -> Array:
    if not config.algorithm.use_kl_in_reward:
        return batch.rewards
    assert config.algorithm.kl_penalty == "kl"
    return paper.penalise_divergence(batch, config.algorithm.kl_ctrl.kl_coef)


def assert_agree(recipe: str, batch: Batch) -> None:
    config = configure(recipe, params=PARAMS.get(recipe, {}))

    advantages, _ = engines_advantages(config, batch)

    expected = FORMULAS[recipe](batch, papers_rewards(config, batch), config)
    np.testing.assert_allclose(advantages * batch.mask, expected, rtol=2e-4, atol=2e-4)


def test_every_recipe_has_a_formula() -> None:
    assert set(FORMULAS) == set(RL_RECIPES)


@pytest.mark.parametrize("recipe", RL_RECIPES)
@pytest.mark.parametrize("has_gaps", [False, True], ids=["answers", "with tools"])
def test_advantages_follow_the_paper(recipe: str, has_gaps: bool) -> None:
    assert_agree(recipe, make_batch(7, prompts=5, group=4, width=9, has_gaps=has_gaps))


@pytest.mark.parametrize("recipe", RL_RECIPES)
@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    prompts=st.integers(2, 5),
    group=st.integers(2, 5),
    width=st.integers(2, 8),
)
def test_advantages_follow_the_paper_whatever_the_responses(
    recipe: str, seed: int, prompts: int, group: int, width: int
) -> None:
    assert_agree(recipe, make_batch(seed, prompts=prompts, group=group, width=width))


@pytest.mark.parametrize("recipe", ["ppo", "remax", "reinforce_plus_plus"])
def test_one_response_to_a_prompt_is_enough(recipe: str) -> None:
    assert_agree(recipe, make_batch(3, prompts=8, group=1, width=6))


def test_the_critic_learns_what_the_reward_came_to() -> None:
    config = configure("ppo", params=PARAMS["ppo"])
    batch = make_batch(11, prompts=4, group=2, width=6)

    _, returns = engines_advantages(config, batch)

    rewards = papers_rewards(config, batch)
    _, expected = paper.generalised(batch, rewards, config.algorithm.gamma, config.algorithm.lam)
    np.testing.assert_allclose(returns * batch.mask, expected, rtol=1e-4, atol=1e-4)


def test_gpg_gives_nothing_where_all_groups_agree() -> None:
    batch = make_batch(5, prompts=3, group=4, width=5)
    batch.rewards[:] = 0.0

    advantages, _ = engines_advantages(configure("gpg"), batch)

    assert not advantages.any()
