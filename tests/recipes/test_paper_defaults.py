"""Defaults of the RL recipes are those of their papers, or of verl where a paper says nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from trellis_recipes.compose import ComposeRequest, compose

Build = Callable[..., ComposeRequest]
ACTOR = "actor_rollout_ref.actor"
LOSS = f"{ACTOR}.policy_loss.loss_mode"
#: Dual-clip PPO (arXiv:1912.09729) is verl's addition; at this bound it never clips.
NO_DUAL_CLIP = {f"{ACTOR}.clip_ratio_c": 1e9}
NO_KL = {f"{ACTOR}.use_kl_loss": False, "algorithm.use_kl_in_reward": False}
DEFAULTS: dict[str, dict[str, Any]] = {
    # DeepSeekMath (arXiv:2402.03300): KL in the loss (k3), mean over tokens, then responses.
    "grpo": {
        **NO_DUAL_CLIP,
        f"{ACTOR}.use_kl_loss": True,
        f"{ACTOR}.kl_loss_type": "low_var_kl",
        f"{ACTOR}.clip_ratio_low": 0.2,
        f"{ACTOR}.clip_ratio_high": 0.2,
        f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean",
    },
    # DAPO (arXiv:2503.14476): clip-higher, token-level loss, no KL.
    "dapo": {
        **NO_DUAL_CLIP,
        **NO_KL,
        f"{ACTOR}.clip_ratio_low": 0.2,
        f"{ACTOR}.clip_ratio_high": 0.28,
        f"{ACTOR}.loss_agg_mode": "token-mean",
        "algorithm.filter_groups.enable": True,
    },
    # Dr. GRPO (arXiv:2503.20783): no division by the group's deviation or by a response's length, no KL.
    "dr_grpo": {
        **NO_DUAL_CLIP,
        **NO_KL,
        "algorithm.norm_adv_by_std_in_grpo": False,
        f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum-norm",
    },
    # GSPO (arXiv:2507.18071, section 5.1): clipping ranges of the sequence's ratio.
    "gspo": {
        **NO_KL,
        LOSS: "gspo",
        f"{ACTOR}.clip_ratio_low": 3e-4,
        f"{ACTOR}.clip_ratio_high": 4e-4,
        f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean",
    },
    # MiniMax-M1 (arXiv:2506.13585): only the upper bound of the importance weight is in use, no KL.
    "cispo": {
        **NO_KL,
        LOSS: "cispo",
        f"{ACTOR}.clip_ratio_low": 10.0,
        f"{ACTOR}.clip_ratio_high": 0.2,
        f"{ACTOR}.loss_agg_mode": "token-mean",
    },
    # PPO (arXiv:1707.06347): clipping at 0.2.
    "ppo": {**NO_DUAL_CLIP, f"{ACTOR}.clip_ratio_low": 0.2, f"{ACTOR}.clip_ratio_high": 0.2},
    # RLOO (arXiv:2402.14740) and ReMax (arXiv:2310.10505): KL in the reward, sums over tokens.
    "rloo": {"algorithm.use_kl_in_reward": True, f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum"},
    "remax": {"algorithm.use_kl_in_reward": True, f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum"},
    # OPO (arXiv:2505.23585): strictly on-policy, no KL.
    "opo": {**NO_KL, f"{ACTOR}.ppo_epochs": 1},
}


@pytest.mark.parametrize("recipe", DEFAULTS)
def test_the_defaults_of_a_recipe_follow_its_paper(recipe: str, request_for: Build) -> None:
    config = compose(request_for(recipe=recipe, platform="cuda")).config

    assert {key: _look_up(config, key) for key in DEFAULTS[recipe]} == DEFAULTS[recipe]


def _look_up(config: dict[str, Any], dotted: str) -> Any:
    found: Any = config
    for name in dotted.split("."):
        found = found[name]
    return found
