"""A complete request, of which a test states what matters to it."""

from collections.abc import Callable
from typing import Any

import pytest
from trellis_recipes.agents import RESOURCES
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.compose import ComposeRequest


def _resources(recipe: str) -> dict[str, str]:
    """What the recipe needs of the platform, where there is such a recipe."""
    if recipe not in {each.id for each in list_recipes()}:
        return {}
    return {knob.name: f"{knob.type}_1" for knob in get_recipe(recipe).knobs if knob.type in RESOURCES}


@pytest.fixture(scope="session")
def request_for() -> Callable[..., ComposeRequest]:
    def build(**choices: Any) -> ComposeRequest:
        complete = {
            "recipe": "grpo",
            "platform": "cpu",
            "gpus": 1,
            "model_path": "/data/models/starter",
            "train_path": "/data/jobs/job_1/attempt-1/prepared/train.parquet",
            "checkpoint_dir": "/data/jobs/job_1/checkpoints",
            "seed": 7,
        }
        request = ComposeRequest(**{**complete, **choices})
        request.params = {**_resources(request.recipe), **request.params}
        return request

    return build
