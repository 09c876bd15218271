"""A complete request, of which a test states what matters to it."""

from collections.abc import Callable
from typing import Any

import pytest
from trellis_recipes.compose import ComposeRequest
from trellis_recipes.memory.architecture import Architecture
from trellis_testing.recipes import resources_of


@pytest.fixture(scope="session")
def smollm() -> Architecture:
    """SmolLM2 with 135 M parameters, as its config.json says."""
    return Architecture(
        family="llama",
        hidden=576,
        layers=30,
        heads=9,
        key_value_heads=3,
        head_dim=64,
        intermediate=1536,
        vocabulary=49_152,
        is_tied=True,
    )


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
        request.params = {**resources_of(request.recipe), **request.params}
        return request

    return build
