"""Configurations of the recipes as verl's own objects."""

import json
from functools import cache
from typing import Any

import pytest
from omegaconf import OmegaConf
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.compose import ComposeRequest, compose
from trellis_testing.recipes import resources_of

#: Those of an algorithm each; agents learn by one of these (``test_agent_masks``).
RL_RECIPES = [recipe.id for recipe in list_recipes() if recipe.family == "rl"]


def configure(recipe: str, **choices: Any) -> Any:
    """What verl gets for a recipe; by default on a CPU with the tiny preset."""
    return _configure(recipe, json.dumps(choices, sort_keys=True))


@cache
def _configure(recipe: str, written: str) -> Any:
    choices = json.loads(written)
    choices["params"] = {**resources_of(recipe), **choices.get("params", {})}
    request = ComposeRequest(
        recipe=recipe,
        **{
            "platform": "cpu",
            "gpus": 1,
            "model_path": "/models/m",
            "train_path": "/job/train.parquet",
            "checkpoint_dir": "/job/checkpoints",
            "seed": 0,
            **choices,
        },
    )
    composition = compose(request)
    assert composition.errors == []
    return OmegaConf.create(composition.config)


@pytest.fixture(autouse=True)
def estimators_of_verl(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    from verl.trainer.ppo import core_algos

    monkeypatch.setattr(core_algos, "ADV_ESTIMATOR_REGISTRY", dict(core_algos.ADV_ESTIMATOR_REGISTRY))
