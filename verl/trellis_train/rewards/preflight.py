"""Loads what a run's rewards are made of before its engine starts: a mistake shows minutes earlier."""

import asyncio
from pathlib import Path

from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec
from trellis_recipes.mapping import reward_mixture

from trellis_train.rewards.mixture import Mixture
from trellis_train.rewards.resources import ScoringPlace


def check_rewards(spec: JobSpec) -> None:
    """Raise ``RewardUnusable`` where a reward of the run could score nothing."""
    if spec.engine is Engine.VERL_PPO and reward_mixture(spec.params):
        asyncio.run(_load(spec))


async def _load(spec: JobSpec) -> None:
    mixture = Mixture.parse(reward_mixture(spec.params), ScoringPlace.open(Path(spec.attempt_dir)))
    try:
        await mixture.load()
    finally:
        await mixture.close()
