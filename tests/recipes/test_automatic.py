"""Batch parameters that are left empty are derived, so that one change never makes others invalid."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_contracts.recipe import Recipe
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.estimate import Machine, estimate_memory

Build = Callable[..., ComposeRequest]
GIB = 1024**3
WITH_PASSES = [recipe for recipe in list_recipes() if any(parameter.auto for parameter in recipe.parameters)]


@pytest.fixture(scope="session")
def on_small_model(request_for: Build, smollm: Architecture) -> Callable[..., Composition]:
    """Composes a request for a model of 135 M parameters on a machine with so much memory."""

    def build(recipe: str, *, memory: int = 16 * GIB, gpus: int = 1, **choices: Any) -> Composition:
        return compose(
            request_for(recipe=recipe, architecture=smollm, device_memory_bytes=memory, gpus=gpus, **choices)
        )

    return build


@pytest.mark.parametrize("recipe", list_recipes(), ids=lambda recipe: recipe.id)
def test_nothing_but_recipe_model_and_data_is_needed_for_a_real_model(
    recipe: Recipe, on_small_model: Callable[..., Composition]
) -> None:
    composition = on_small_model(recipe.id)

    assert composition.errors == []
    assert composition.preset == "cpu-small"


@pytest.mark.parametrize("recipe", WITH_PASSES, ids=lambda recipe: recipe.id)
@given(batch=st.integers(1, 48), gpus=st.sampled_from([1, 2, 4]), data=st.data())
@settings(max_examples=12, deadline=None)
def test_another_batch_makes_no_other_parameter_invalid(
    recipe: Recipe,
    batch: int,
    gpus: int,
    data: st.DataObject,
    on_small_model: Callable[..., Composition],
) -> None:
    params: dict[str, Any] = {"batch_size": batch * gpus}
    if recipe.id == "kto":
        params["batch_size"] *= 2  # its divergence needs two rows in a pass
    if recipe.parameter("group_size") is not None:
        params["group_size"] = data.draw(st.integers(2, 9))

    composition = on_small_model(recipe.id, gpus=gpus, params=params)

    assert composition.errors == []


@pytest.mark.parametrize("length", [("max_response_length", 2000), ("max_length", 4000)])
def test_longer_rows_make_no_other_parameter_invalid(
    length: tuple[str, int], on_small_model: Callable[..., Composition]
) -> None:
    name, tokens = length
    for recipe in WITH_PASSES:
        if recipe.parameter(name) is not None:
            assert on_small_model(recipe.id, params={name: tokens}).errors == [], recipe.id


def test_the_pass_is_the_largest_that_fits(
    on_small_model: Callable[..., Composition], smollm: Architecture
) -> None:
    params = {"batch_size": 64, "max_length": 512}
    sizes = [
        on_small_model("dpo", memory=int(gib * GIB), platform="cuda", params=params).params[
            "micro_batch_size"
        ]
        for gib in (4, 8, 16, 32, 64)
    ]

    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert all(64 % size == 0 for size in sizes)
    chosen = on_small_model("dpo", memory=16 * GIB, platform="cuda", params=params)
    assert needed(chosen, smollm) <= 0.75 * 16 * GIB
    doubled = {**params, "micro_batch_size": 2 * chosen.params["micro_batch_size"]}
    larger = on_small_model("dpo", memory=16 * GIB, platform="cuda", params=doubled)
    assert needed(larger, smollm) > 0.75 * 16 * GIB


def needed(composition: Composition, model: Architecture, recipe: str = "dpo", platform: str = "cuda") -> int:
    found = estimate_memory(
        model,
        engine=composition.engine,
        recipe=recipe,
        config=composition.config,
        platform=platform,
        gpus=1,
        env=composition.env,
        machine=Machine(16 * GIB),
    )
    return found.per_gpu_bytes


def test_values_that_are_given_stay(on_small_model: Callable[..., Composition]) -> None:
    given_values = {"mini_batch_size": 2, "micro_batch_size": 8, "max_tokens_per_gpu": 700}

    composition = on_small_model("grpo", params=given_values)

    assert {name: composition.params[name] for name in given_values} == given_values
    assert composition.derived == []


def test_a_given_value_is_still_checked(on_small_model: Callable[..., Composition]) -> None:
    composition = on_small_model("grpo", params={"mini_batch_size": 3, "micro_batch_size": 5})

    assert "micro_batch_not_divisor" in [issue.code for issue in composition.errors]


def test_derived_parameters_are_named(on_small_model: Callable[..., Composition]) -> None:
    composition = on_small_model("grpo", params={"micro_batch_size": 4})

    assert composition.derived == ["max_tokens_per_gpu", "mini_batch_size"]
    assert composition.params["mini_batch_size"] == 4


@pytest.mark.parametrize(("recipe", "expected"), [("grpo", 8), ("rloo", 16), ("remax", 16)])
def test_an_update_takes_half_of_a_step_or_all_where_the_paper_does(
    recipe: str, expected: int, on_small_model: Callable[..., Composition]
) -> None:
    composition = on_small_model(recipe, params={"batch_size": 16})

    assert composition.params["mini_batch_size"] == expected


@pytest.mark.parametrize(("batch", "expected"), [(7, 7), (26, 13), (34, 17), (9, 3), (22, 11)])
def test_a_batch_without_a_part_of_use_is_one_update(
    batch: int, expected: int, on_small_model: Callable[..., Composition]
) -> None:
    composition = on_small_model("grpo", params={"batch_size": batch})

    assert composition.params["mini_batch_size"] == expected


def test_without_knowledge_of_the_model_passes_are_cautious(request_for: Build) -> None:
    composition = compose(
        request_for(recipe="grpo", preset="gpu-24gb", platform="cuda", params={"dynamic_batch": False})
    )

    assert composition.errors == []
    assert composition.params["micro_batch_size"] == 8


def test_passes_on_a_cpu_are_bounded_by_the_scores_of_the_vocabulary(
    on_small_model: Callable[..., Composition], smollm: Architecture
) -> None:
    composition = on_small_model("grpo", memory=512 * GIB)

    tokens = composition.params["micro_batch_size"] * (256 + 64)
    assert tokens * smollm.vocabulary * 4 <= 1024**3


def test_a_pass_on_a_cpu_takes_the_responses_of_a_group_together(
    on_small_model: Callable[..., Composition], smollm: Architecture
) -> None:
    """A pass computes a prompt once; with long prompts fewer rows would make it compute one several times."""
    long = {"group_size": 4, "max_prompt_length": 1280, "max_response_length": 128}

    assert on_small_model("grpo", memory=64 * GIB, params=long).params["micro_batch_size"] == 4
    assert on_small_model("agent_grpo", memory=24 * GIB).params["micro_batch_size"] == 4

    short_of_memory = on_small_model("grpo", memory=8 * GIB, params=long)
    checkpointed = on_small_model("grpo", memory=64 * GIB, params={**long, "gradient_checkpointing": True})
    wordy = on_small_model("grpo", memory=512 * GIB, params={**long, "max_response_length": 2048})
    assert short_of_memory.params["micro_batch_size"] < 4
    assert checkpointed.params["micro_batch_size"] == 2  # whole rows, scored from end to end
    assert wordy.params["micro_batch_size"] == 1
    assert 4 * 2048 * smollm.vocabulary * 4 > 1024**3


def test_a_tiny_model_keeps_the_tiny_preset(request_for: Build, smollm: Architecture) -> None:
    tiny = Architecture(
        **{**vars(smollm), "hidden": 128, "layers": 4, "vocabulary": 259, "intermediate": 256}
    )

    composition = compose(request_for(architecture=tiny, device_memory_bytes=16 * GIB))

    assert composition.preset == "cpu-tiny"
    assert composition.params["micro_batch_size"] == 64


def test_every_automatic_parameter_can_be_left_empty() -> None:
    for recipe in WITH_PASSES:
        for parameter in recipe.parameters:
            if parameter.auto:
                assert parameter.default is None, (recipe.id, parameter.name)


def test_the_real_model_preset_is_offered_by_every_recipe() -> None:
    for recipe in list_recipes():
        assert "cpu-small" in {preset.id for preset in get_recipe(recipe.id).presets}, recipe.id


def test_a_small_pretrained_encoder_is_not_trained_at_the_rate_of_a_toy(request_for: Build) -> None:
    choices = {"recipe": "agent_retrieval", "platform": "cpu"}

    encoder = compose(request_for(**choices, parameter_count=22_700_000))
    toy = compose(request_for(**choices, parameter_count=800_000))

    assert (encoder.preset, encoder.params["learning_rate"]) == ("cpu-small", 2e-5)
    assert (toy.preset, toy.params["learning_rate"]) == ("cpu-tiny", 2e-3)


@pytest.mark.parametrize(
    ("rows", "params", "held_out"),
    [(63, {}, 6), (9, {}, 1), (10_000, {}, None), (None, {}, None), (63, {"validation_rows": 20}, 20)],
)
def test_rows_held_out_unasked_are_a_tenth_of_a_small_dataset(
    rows: int | None, params: dict[str, Any], held_out: int | None
) -> None:
    """Where ``held_out`` is None, as many as the preset says."""

    def build(row_count: int | None, given: dict[str, Any]) -> Composition:
        return compose(
            ComposeRequest(
                recipe="sft", preset="cpu-tiny", params={"batch_size": 4, **given}, platform="cpu", gpus=1,
                model_path="/m", train_path="/d/train.parquet", checkpoint_dir="/c", seed=1,
                row_count=row_count,
            )
        )  # fmt: skip

    found, usual = build(rows, params), build(None, {}).params["validation_rows"]

    assert found.params["validation_rows"] == (usual if held_out is None else held_out)
    assert ("validation_rows" in found.derived) is (held_out is not None and not params)
    assert [error.code for error in found.errors if error.code == "too_few_rows"] == []


@pytest.mark.parametrize("recipe", ["ppo", "agent_ppo"])
def test_the_critic_of_a_run_on_a_cpu_takes_small_passes(
    recipe: str, on_small_model: Callable[..., Composition]
) -> None:
    sizes = {"batch_size": 8, "max_prompt_length": 128, "max_response_length": 24, "mini_batch_size": 8}

    found = on_small_model(recipe, params=sizes, memory=64 * GIB)

    critic = found.config["critic"]
    assert found.params["micro_batch_size"] == 8 * int(str(found.params.get("group_size", 1)))
    assert critic["fsdp"]["micro_batch_size_per_gpu"] == found.params["critic_micro_batch_size"] <= 6
    assert critic["ppo_infer_max_token_len_per_gpu"] == found.params["critic_max_tokens_per_gpu"] == 608
    assert found.errors == []


def test_small_passes_of_the_critic_take_less_memory(
    on_small_model: Callable[..., Composition], smollm: Architecture
) -> None:
    sizes = {
        "batch_size": 8,
        "group_size": 4,
        "max_prompt_length": 128,
        "max_response_length": 24,
        "mini_batch_size": 8,
    }
    small, large = (
        on_small_model("ppo", params={**sizes, **critic}, memory=64 * GIB)
        for critic in ({}, {"critic_micro_batch_size": 32})
    )

    assert large.errors == []
    assert needed(small, smollm, "ppo", "cpu") < needed(large, smollm, "ppo", "cpu") - 2 * GIB


def test_the_critic_follows_sizes_that_are_given(on_small_model: Callable[..., Composition]) -> None:
    composition = on_small_model("ppo", params={"max_tokens_per_gpu": 4000, "micro_batch_size": 32})

    assert composition.params["critic_max_tokens_per_gpu"] == 4000
    assert composition.params["critic_micro_batch_size"] == 32
    assert composition.derived == ["critic_max_tokens_per_gpu", "critic_micro_batch_size", "mini_batch_size"]
