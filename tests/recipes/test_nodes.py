"""Jobs on the nodes that a cluster has: RL spreads over several, the other recipes are refused there."""

from collections.abc import Callable
from typing import Any

import pytest
from trellis_recipes.compose import ComposeRequest, compose

Build = Callable[..., ComposeRequest]
#: So that batches can be shared among sixteen GPUs.
RL_BATCHES = {"batch_size": 96, "mini_batch_size": 96}


def find_problem(request: ComposeRequest) -> tuple[str, str, str | None] | None:
    """(code, field, suggestion) of what is wrong with the GPUs."""
    found = [issue for issue in compose(request).errors if issue.field == "resources.gpus"]
    assert len(found) <= 1
    return (found[0].code, found[0].field, found[0].suggestion) if found else None


@pytest.mark.parametrize(
    ("gpus", "node_gpus", "nodes", "per_node"),
    [
        (8, [4, 4], 2, 4),
        (8, [8, 8], 1, 8),
        (4, [0, 4], 1, 4),
        (12, [4, 4, 4], 3, 4),
        # A cluster that does not answer: launching asks it again.
        (8, None, 1, 8),
    ],
)
def test_rl_is_spread_over_the_nodes_that_the_cluster_has(
    gpus: int, node_gpus: list[int] | None, nodes: int, per_node: int, request_for: Build
) -> None:
    composition = compose(
        request_for(platform="cuda", preset="gpu-80gb", gpus=gpus, node_gpus=node_gpus, params=RL_BATCHES)
    )

    trainer = composition.config["trainer"]
    assert [issue for issue in composition.errors if issue.field == "resources.gpus"] == []
    assert (trainer["nnodes"], trainer["n_gpus_per_node"]) == (nodes, per_node)


@pytest.mark.parametrize("recipe", ["sft", "cpt", "dpo", "kto", "reward_model"])
def test_a_recipe_of_one_node_is_refused_on_more_gpus_than_a_node_has(
    recipe: str, request_for: Build
) -> None:
    choices: dict[str, Any] = {"recipe": recipe, "platform": "cuda", "node_gpus": [4, 4, 0]}

    assert find_problem(request_for(**choices, gpus=4)) is None
    assert find_problem(request_for(**choices, gpus=8)) == ("one_node_only", "resources.gpus", "4")


@pytest.mark.parametrize(
    ("recipe", "gpus", "node_gpus", "problem"),
    [
        ("grpo", 16, [4, 4], ("not_enough_gpus", "resources.gpus", "8")),
        ("sft", 1, [0], ("not_enough_gpus", "resources.gpus", None)),
        ("grpo", 5, [4, 2], ("gpus_not_whole_nodes", "resources.gpus", "4")),
    ],
)
def test_gpus_that_no_set_of_nodes_has_are_refused(
    recipe: str, gpus: int, node_gpus: list[int], problem: tuple[str, str, str | None], request_for: Build
) -> None:
    assert (
        find_problem(request_for(recipe=recipe, platform="cuda", gpus=gpus, node_gpus=node_gpus)) == problem
    )
