"""A learning rate that was chosen for training all weights is not kept for an adapter without a word."""

from collections.abc import Callable

import pytest
from trellis_recipes.compose import ComposeRequest, compose

Build = Callable[..., ComposeRequest]
CODES = {"learning_rate_of_full_training", "learning_rate_of_adapter"}


@pytest.mark.parametrize(
    ("recipe", "preset", "params", "expected"),
    [
        ("grpo", "gpu-80gb", {"lora_rank": 32}, ("learning_rate_of_full_training", "1e-05")),
        ("sft", "cpu-small", {"lora_rank": 8}, ("learning_rate_of_full_training", "0.0002")),
        ("dpo", "cpu-small", {"lora_rank": 8}, ("learning_rate_of_full_training", None)),
        ("grpo", "gpu-24gb", {"lora_rank": 0}, ("learning_rate_of_adapter", None)),
        ("grpo", "gpu-80gb", {"lora_rank": 32, "learning_rate": 1e-6}, None),
        ("grpo", "gpu-80gb", {"lora_rank": 0}, None),
        ("grpo", "gpu-24gb", {"lora_rank": 16}, None),
        ("grpo", "gpu-24gb", {}, None),
    ],
)
def test_a_rate_for_the_other_way_of_training_is_warned_of(
    recipe: str,
    preset: str,
    params: dict[str, float],
    expected: tuple[str, str | None] | None,
    request_for: Build,
) -> None:
    platform = preset.partition("-")[0].replace("gpu", "cuda")

    found = compose(request_for(recipe=recipe, preset=preset, platform=platform, params=params))

    assert found.errors == []
    warnings = [(each.code, each.suggestion) for each in found.warnings if each.code in CODES]
    if expected is None:
        assert warnings == []
    else:
        ((code, suggestion),) = warnings
        assert code == expected[0]
        assert suggestion == expected[1] or expected[1] is None
