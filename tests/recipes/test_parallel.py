"""Ways to divide a run over GPUs that verl or vLLM refuse once the model is loaded are refused before."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.estimate import estimate_memory
from trellis_recipes.memory.reference_models import reference_models
from trellis_testing.issues import codes

Build = Callable[..., ComposeRequest]
ULYSSES = "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size"
OLD_ULYSSES = "actor_rollout_ref.actor.ulysses_sequence_parallel_size"
#: Of Qwen2.5-0.5B.
HEADS_14 = {"heads": 14, "key_value_heads": 2}


def shape(smollm: Architecture, **changes: Any) -> Architecture:
    return Architecture(**{**smollm.__dict__, **changes})


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"gpus": 1, "overrides": {ULYSSES: 2}}, "sequence_parallel_not_divisor"),
        ({"gpus": 8, "overrides": {ULYSSES: 3}}, "sequence_parallel_not_divisor"),
        ({"gpus": 8, "overrides": {OLD_ULYSSES: 3}}, "sequence_parallel_not_divisor"),
        ({"gpus": 8, "overrides": {ULYSSES: 4}}, "sequence_parallel_heads"),
        (
            {"gpus": 8, "overrides": {ULYSSES: 2}, "has_flash_attention": False},
            "sequence_parallel_needs_packing",
        ),
        (
            {"gpus": 8, "overrides": {"actor_rollout_ref.actor.fsdp_config.fsdp_size": 3}},
            "fsdp_size_not_divisor",
        ),
        (
            {"gpus": 8, "overrides": {"actor_rollout_ref.actor.fsdp_config.fsdp_size": 0}},
            "fsdp_size_not_divisor",
        ),
        ({"gpus": 8, "params": {"tensor_parallel": 8}}, "tensor_parallel_heads"),
        (
            {"recipe": "sft", "gpus": 8, "overrides": {"engine.ulysses_sequence_parallel_size": 3}},
            "sequence_parallel_not_divisor",
        ),
        ({"recipe": "sft", "gpus": 8, "overrides": {"engine.fsdp_size": 3}}, "fsdp_size_not_divisor"),
        (
            {"recipe": "ppo", "gpus": 8, "overrides": {"critic.fsdp.ulysses_sequence_parallel_size": 3}},
            "sequence_parallel_not_divisor",
        ),
    ],
)
def test_what_cannot_be_divided_is_refused(
    choices: dict[str, Any], code: str, request_for: Build, smollm: Architecture
) -> None:
    found = compose(request_for(platform="cuda", architecture=shape(smollm, **HEADS_14), **choices))

    assert code in codes(found.errors)


@pytest.mark.parametrize(
    "choices",
    [
        {"gpus": 8, "overrides": {ULYSSES: 2}},
        {"gpus": 8, "overrides": {"actor_rollout_ref.actor.fsdp_config.fsdp_size": 4}},
        {"gpus": 8, "params": {"tensor_parallel": 2}},
        {"recipe": "sft", "gpus": 8, "overrides": {"engine.ulysses_sequence_parallel_size": 2}},
    ],
)
def test_what_can_be_divided_passes(
    choices: dict[str, Any], request_for: Build, smollm: Architecture
) -> None:
    found = compose(request_for(platform="cuda", architecture=shape(smollm, **HEADS_14), **choices))

    assert found.errors == []


@pytest.mark.parametrize("has_flash_attention", [True, False])
def test_flash_attention_by_name_needs_its_package(has_flash_attention: bool, request_for: Build) -> None:
    request = request_for(
        recipe="dpo",
        platform="cuda",
        has_flash_attention=has_flash_attention,
        overrides={"attn_implementation": "flash_attention_2"},
    )

    found = compose(request)

    assert codes(found.errors) == ([] if has_flash_attention else ["flash_attention_missing"])


def test_gpus_that_share_a_sequence_share_the_limit_of_a_pass(request_for: Build) -> None:
    lengths = {"max_prompt_length": 2048, "max_response_length": 8192, "max_tokens_per_gpu": 2560}
    choices = {"platform": "cuda", "gpus": 8, "params": {"dynamic_batch": True, **lengths}}

    alone = compose(request_for(**choices))
    shared = compose(request_for(**choices, overrides={ULYSSES: 4}))

    assert "tokens_per_pass_too_small" in codes(alone.errors)
    assert shared.errors == []


def test_gpus_that_share_a_sequence_hold_what_the_limit_says(request_for: Build) -> None:
    model = reference_models()["7B"]
    params = {"dynamic_batch": True, "max_tokens_per_gpu": 20_480}

    def activations(**overrides: int) -> int:
        request = request_for(platform="cuda", gpus=8, params=params, architecture=model, overrides=overrides)
        found: Composition = compose(request)
        estimate = estimate_memory(
            model,
            engine=found.engine,
            recipe="grpo",
            config=found.config,
            platform="cuda",
            gpus=8,
            env=found.env,
        )
        return estimate.per_gpu_bytes

    assert activations(**{ULYSSES: 4}) == activations()


def test_a_rollout_longer_than_the_context_is_refused(request_for: Build, smollm: Architecture) -> None:
    model = shape(smollm, context_length=8192)

    fits = compose(
        request_for(architecture=model, params={"max_prompt_length": 192, "max_response_length": 8000})
    )
    is_longer = compose(request_for(architecture=model, params={"max_response_length": 9000}))

    assert fits.errors == []
    (error,) = is_longer.errors
    assert (error.code, error.field) == ("longer_than_context", "params.max_response_length")
    assert error.suggestion == str(8192 - is_longer.params["max_prompt_length"])


@pytest.mark.parametrize("recipe", ["sft", "dpo"])
def test_rows_longer_than_the_context_are_warned_of(
    recipe: str, request_for: Build, smollm: Architecture
) -> None:
    model = shape(smollm, context_length=256)

    found = compose(request_for(recipe=recipe, architecture=model, params={"max_length": 512}))
    scaled = compose(
        request_for(recipe=recipe, architecture=replace(model, rope_factor=4.0), params={"max_length": 512})
    )

    assert found.errors == []
    assert "longer_than_context" in codes(found.warnings)
    assert "longer_than_context" not in codes(scaled.warnings)
