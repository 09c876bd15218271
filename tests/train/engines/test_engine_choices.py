"""Our lists of verl's choices against what verl itself registers."""

from collections.abc import Iterable

import pytest
import torch
from trellis_recipes.engine_options import find_rule
from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
from verl.experimental.agent_loop.tool_parser import ToolParser
from verl.experimental.reward_loop.reward_manager.registry import REWARD_MANAGER
from verl.trainer.ppo import core_algos, rollout_corr_helper
from verl.trainer.ppo.v1 import trainer_base
from verl.workers.engine.base import EngineRegistry
from verl.workers.rollout.base import _ROLLOUT_REGISTRY

# What is imported here takes a minute or more.
pytestmark = pytest.mark.slow
REGISTRIES: dict[str, Iterable[str]] = {
    "algorithm.adv_estimator": core_algos.ADV_ESTIMATOR_REGISTRY,
    "actor_rollout_ref.actor.policy_loss.loss_mode": core_algos.POLICY_LOSS_REGISTRY,
    "trainer.v1.trainer_mode": trainer_base.TRAINER_REGISTRY,
    "actor_rollout_ref.rollout.name": {name for name, _ in _ROLLOUT_REGISTRY},
    "actor_rollout_ref.rollout.agent.default_agent_loop": _agent_loop_registry,
    "actor_rollout_ref.rollout.multi_turn.format": ToolParser._registry,
    "reward.reward_manager.name": REWARD_MANAGER,
    "algorithm.rollout_correction.rollout_rs": rollout_corr_helper.SUPPORTED_ROLLOUT_RS_OPTIONS,
    "actor_rollout_ref.actor.strategy": EngineRegistry._engines["language_model"],
}


@pytest.mark.parametrize("key", REGISTRIES)
def test_a_choice_of_ours_is_registered_and_a_registered_one_is_ours_or_explained(key: str) -> None:
    registered = {getattr(name, "value", name) for name in REGISTRIES[key]}
    rule = find_rule("verl", key)
    assert rule is not None

    assert set(rule.choices) <= registered
    assert registered <= {*rule.choices, *rule.elsewhere}


def test_verl_averages_the_loss_in_each_of_our_ways() -> None:
    rule = find_rule("verl", "actor_rollout_ref.actor.loss_agg_mode")
    assert rule is not None
    loss, mask = torch.ones(2, 3), torch.ones(2, 3)

    for mode in rule.choices:
        assert core_algos.agg_loss(loss, mask, mode).item() > 0
    with pytest.raises(ValueError, match="Invalid loss_agg_mode"):
        core_algos.agg_loss(loss, mask, "nonsense")


def test_verl_computes_each_of_our_divergences() -> None:
    rule = find_rule("verl", "actor_rollout_ref.actor.kl_loss_type")
    assert rule is not None
    policy, reference = torch.tensor([-1.0]), torch.tensor([-2.0])

    for name in rule.choices:
        assert core_algos.kl_penalty(policy, reference, name).item() > 0
    for name in rule.elsewhere:
        with pytest.raises(NotImplementedError):
            core_algos.kl_penalty(policy, reference, name)
