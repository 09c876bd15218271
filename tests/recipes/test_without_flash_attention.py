"""Jobs on a GPU where flash-attn is not installed: PyTorch's attention, nothing packed, and it is said."""

from collections.abc import Callable
from typing import Any

import pytest
from trellis_recipes.compose import ComposeRequest, Composition, compose

Build = Callable[..., ComposeRequest]


@pytest.fixture
def compose_without(request_for: Build) -> Callable[..., Composition]:
    def build(recipe: str, **choices: Any) -> Composition:
        return compose(
            request_for(
                recipe=recipe, platform="cuda", preset="gpu-80gb", has_flash_attention=False, **choices
            )
        )

    return build


@pytest.mark.parametrize("recipe", ["grpo", "sft", "cpt"])
def test_verl_runs_on_sdpa_without_packing_and_it_is_said(
    recipe: str, compose_without: Callable[..., Composition]
) -> None:
    composition = compose_without(recipe)

    model = (
        composition.config["actor_rollout_ref"]["model"] if recipe == "grpo" else composition.config["model"]
    )
    assert model["override_config"]["attn_implementation"] == "sdpa"
    assert model["use_remove_padding"] is False
    assert composition.errors == []
    assert "no_flash_attention" in [each.code for each in composition.warnings]


@pytest.mark.parametrize("recipe", ["dpo", "agent_sft", "agent_retrieval"])
def test_trainers_that_never_use_it_do_not_miss_it(
    recipe: str, compose_without: Callable[..., Composition]
) -> None:
    composition = compose_without(recipe)

    assert composition.errors == []
    assert "no_flash_attention" not in [each.code for each in composition.warnings]


def test_a_critic_is_refused_before_the_launch(compose_without: Callable[..., Composition]) -> None:
    assert [each.code for each in compose_without("ppo").errors] == ["critic_needs_flash_attention"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("actor_rollout_ref.model.use_remove_padding", True),
        ("actor_rollout_ref.model.override_config.attn_implementation", "flash_attention_2"),
    ],
)
def test_what_asks_for_it_by_name_is_refused(
    key: str, value: Any, compose_without: Callable[..., Composition]
) -> None:
    composition = compose_without("grpo", overrides={key: value})

    assert [each.code for each in composition.errors] == ["flash_attention_missing"]


@pytest.mark.parametrize(("platform", "preset"), [("cuda", "gpu-80gb"), ("cpu", "cpu-tiny")])
def test_nothing_is_said_where_it_is_installed_or_not_needed(
    platform: str, preset: str, request_for: Build
) -> None:
    composition = compose(
        request_for(platform=platform, preset=preset, has_flash_attention=platform == "cuda")
    )

    assert composition.errors == []
    assert "no_flash_attention" not in [each.code for each in composition.warnings]
