"""What single recipes make of their parameters."""

from collections.abc import Callable

import pytest
from trellis_recipes.compose import ComposeRequest, compose

Build = Callable[..., ComposeRequest]


def test_a_mixture_of_rewards_takes_the_place_of_the_simple_parameters(request_for: Build) -> None:
    rewards = [{"name": "exact", "weight": 0.8}, {"name": "format", "weight": 0.2}]

    composition = compose(request_for(params={"rewards": rewards, "reward": "regex"}))

    used = composition.config["reward"]["custom_reward_function"]["reward_kwargs"]["rewards"]
    assert composition.errors == []
    assert [(term["name"], term["weight"]) for term in used] == [("exact", 0.8), ("format", 0.2)]


def test_dr_grpo_divides_by_the_longest_response_that_is_allowed(request_for: Build) -> None:
    composition = compose(request_for(recipe="dr_grpo", params={"max_response_length": 40}))

    assert composition.config["actor_rollout_ref"]["actor"]["loss_scale_factor"] == 40


def test_dapo_penalises_the_end_of_the_longest_response(request_for: Build) -> None:
    composition = compose(request_for(recipe="dapo", params={"max_response_length": 40}))

    shaping = composition.config["reward"]["reward_kwargs"]
    assert shaping["max_resp_len"] == 40
    assert shaping["overlong_buffer_cfg"] == {"enable": True, "len": 8, "log": True, "penalty_factor": 1.0}


@pytest.mark.parametrize("recipe", ["opo", "gpg"])
def test_an_on_policy_recipe_makes_one_update_of_a_step(recipe: str, request_for: Build) -> None:
    config = compose(request_for(recipe=recipe, params={"batch_size": 48})).config

    actor = config["actor_rollout_ref"]["actor"]
    assert (actor["ppo_mini_batch_size"], actor["ppo_epochs"]) == (48, 1)


def test_the_critic_goes_with_the_policy_in_what_belongs_to_the_machine(request_for: Build) -> None:
    critic = compose(request_for(recipe="ppo", params={"micro_batch_size": 64})).config["critic"]

    assert critic["model"]["path"] == "/data/models/starter"
    assert critic["fsdp"]["use_dynamic_bsz"] is False
    assert (
        critic["fsdp"]["micro_batch_size_per_gpu"] == critic["fsdp"]["infer_micro_batch_size_per_gpu"] == 64
    )
