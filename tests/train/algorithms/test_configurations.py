"""Every recipe × preset as verl's own config objects, whose checks must pass before a GPU is touched."""

import pytest
from trellis_contracts.recipe import Engine
from trellis_recipes.catalogue import list_recipes

from .conftest import configure

CASES = [
    pytest.param(
        recipe.id,
        preset.id,
        preset.gpus,
        platform,
        id=f"{recipe.id}-{preset.id}-{platform}",
        # Half a second each: at every change those on the platform that they are made for.
        marks=[] if (preset.id == "cpu-tiny") == (platform == "cpu") else pytest.mark.slow,
    )
    for recipe in list_recipes()
    if recipe.engine is Engine.VERL_PPO
    for preset in recipe.presets
    for platform in ("cpu", "cuda")
]


@pytest.mark.parametrize(("recipe", "preset", "gpus", "platform"), CASES)
def test_verl_accepts_the_configuration(recipe: str, preset: str, gpus: int, platform: str) -> None:
    from verl.utils.config import omega_conf_to_dataclass

    config = configure(recipe, preset=preset, gpus=gpus, platform=platform)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    actor.validate(gpus, config.data.train_batch_size, config.actor_rollout_ref.model)

    assert actor.engine.strategy == "fsdp2"
    assert omega_conf_to_dataclass(config.algorithm).adv_estimator == config.algorithm.adv_estimator
    if recipe == "ppo":
        _assert_critic_is_accepted(config, gpus)


def _assert_critic_is_accepted(config, gpus: int) -> None:  # type: ignore[no-untyped-def]
    from verl.utils.config import omega_conf_to_dataclass

    # The model's own config needs its files.
    critic = omega_conf_to_dataclass({**config.critic, "model": None})
    critic.validate(gpus, config.data.train_batch_size)

    assert critic.engine.strategy == "fsdp2"
    assert critic.engine.use_dynamic_bsz == config.actor_rollout_ref.actor.use_dynamic_bsz
