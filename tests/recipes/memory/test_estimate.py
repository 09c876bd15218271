"""The memory estimate against published figures, hand-made sums and what must hold for every run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_recipes.catalogue import list_recipes
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_recipes.memory import formulas
from trellis_recipes.memory.architecture import UnknownArchitecture, find_architecture, read_architecture
from trellis_recipes.memory.estimate import Machine, estimate_memory
from trellis_recipes.memory.plan import read_plan
from trellis_recipes.memory.schemas import MemoryEstimate, MemoryPhase
from trellis_recipes.memory.settings import IncompleteConfiguration

GIB = 1024**3
QWEN2_7B: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
QWEN2_HALF_B: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}
LLAMA3_8B: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": False,
}
QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 151936,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "tie_word_embeddings": False,
}


def estimate(
    recipe: str = "sft",
    *,
    config: dict[str, Any] | None = None,
    preset: str | None = None,
    platform: str = "cuda",
    gpus: int = 1,
    memory_bytes: int | None = None,
    **params: Any,
) -> MemoryEstimate:
    composed = compose_recipe(recipe, preset=preset, platform=platform, gpus=gpus, params=params)
    return estimate_memory(
        read_architecture(config or QWEN2_7B),
        engine=composed.engine,
        recipe=recipe,
        config=composed.config,
        platform=platform,
        gpus=gpus,
        env=composed.env,
        machine=Machine(memory_bytes, None),
    )


def compose_recipe(
    recipe: str,
    *,
    preset: str = "gpu-80gb",
    platform: str = "cuda",
    gpus: int = 1,
    params: dict[str, Any] | None = None,
) -> Composition:
    return compose(
        ComposeRequest(
            recipe=recipe,
            preset=preset,
            params=params or {},
            platform=platform,
            gpus=gpus,
            model_path="/models/a",
            train_path="/data/train.parquet",
            checkpoint_dir="/checkpoints",
            seed=1,
        )
    )


def find(found: MemoryEstimate, name: str) -> MemoryPhase:
    return next(phase for phase in found.phases if phase.name == name)


def sizes(found: MemoryEstimate, phase: str) -> dict[str, int]:
    return {part.name: part.bytes for part in find(found, phase).parts}


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (QWEN2_7B, 7_615_616_512),
        (QWEN2_HALF_B, 494_032_768),
        (LLAMA3_8B, 8_030_261_248),
        (MIXTRAL, 46_702_792_704),
        (QWEN3_30B, 30_532_122_624),
    ],
    ids=["Qwen2.5-7B", "Qwen2.5-0.5B", "Llama-3-8B", "Mixtral-8x7B", "Qwen3-30B-A3B"],
)
def test_published_models_have_their_published_size(config: dict[str, Any], count: int) -> None:
    assert read_architecture(config).parameters == count


@pytest.mark.parametrize(
    ("config", "size"), [(QWEN2_7B, 57_344), (LLAMA3_8B, 131_072)], ids=["Qwen2.5-7B", "Llama-3-8B"]
)
def test_the_kv_cache_of_a_token_counts_key_value_heads_only(config: dict[str, Any], size: int) -> None:
    assert formulas.kv_bytes_per_token(read_architecture(config), 2) == size


def test_lora_of_rank_sixteen_on_all_linear_layers_has_its_known_size() -> None:
    # peft's own count for Qwen2.5-7B with all-linear, rank 16.
    assert read_architecture(QWEN2_7B).count_lora(16) == 40_370_176
    assert read_architecture(QWEN2_7B).count_lora(8, frozenset({"q_proj", "v_proj"})) == 2_523_136


def test_full_training_needs_sixteen_bytes_a_parameter_before_activations() -> None:
    """ZeRO's 16 bytes a parameter: here fp32 weights, gradients and two moments (4 + 4 + 8)."""
    parts = sizes(estimate(lora_rank=0, preset="gpu-80gb"), "train")

    assert parts["weights"] + parts["gradients"] + parts["optimizer"] == 16 * 7_615_616_512


def test_fsdp_splits_weights_gradients_and_optimizer() -> None:
    one = sizes(estimate(lora_rank=0, preset="gpu-80gb"), "train")
    eight = sizes(estimate(lora_rank=0, preset="gpu-80gb", gpus=8), "train")

    for name in ("weights", "gradients", "optimizer"):
        assert eight[name] == one[name] // 8
    assert eight["gathered"] == one["gathered"]


def test_an_adapter_has_small_gradients_and_the_whole_base() -> None:
    parts = sizes(estimate(lora_rank=16, preset="gpu-80gb"), "train")

    assert parts["gradients"] == 40_370_176 * 4
    assert parts["optimizer"] == 40_370_176 * 8
    assert parts["weights"] == 40_370_176 * 4 + 7_615_616_512 * 2


def test_the_rollout_engine_takes_its_share_of_the_gpu() -> None:
    found = estimate("grpo", preset="gpu-80gb", gpus=1, memory_bytes=80 * GIB, sampler_memory=0.5)
    parts = sizes(found, "rollout")

    assert parts["rollout_weights"] + parts["kv_cache"] == pytest.approx(40 * GIB, abs=2)
    assert "kv_cache" not in sizes(found, "update")


def test_on_a_cpu_the_rollout_engine_stays_and_its_cache_is_as_configured() -> None:
    found = estimate("grpo", platform="cpu", config=QWEN2_HALF_B)

    for phase in ("rollout", "log_probs", "update"):
        assert sizes(found, phase)["kv_cache"] == GIB
        assert sizes(found, phase)["rollout_weights"] == 2 * 4 * 494_032_768


def test_a_short_run_on_a_cpu_fills_its_cache_as_far_as_it_writes() -> None:
    sizes_of = {"batch_size": 8, "group_size": 4, "max_prompt_length": 64, "max_response_length": 32}

    def cache(steps: int) -> int:
        found = estimate("grpo", platform="cpu", config=QWEN2_HALF_B, total_steps=steps, **sizes_of)
        return sizes(found, "rollout")["kv_cache"]

    tokens = 2 * 8 * 4 * (64 + 32)
    assert cache(2) == tokens * formulas.kv_bytes_per_token(read_architecture(QWEN2_HALF_B), 4)
    assert cache(1000) == GIB


def test_the_libraries_of_a_run_on_a_cpu_are_those_of_its_processes() -> None:
    def libraries(recipe: str) -> int:
        found = estimate(recipe, platform="cpu", config=QWEN2_HALF_B)
        return next(part.bytes for part in found.phases[0].parts if part.name == "runtime")

    assert libraries("dpo") < libraries("sft") < libraries("grpo")


def test_a_reference_is_held_where_it_is_compared_with() -> None:
    without = estimate("grpo", preset="gpu-80gb", use_kl_loss=False)
    with_kl = estimate("grpo", preset="gpu-80gb", use_kl_loss=True, lora_rank=0)
    adapter = estimate("grpo", preset="gpu-80gb", use_kl_loss=True, lora_rank=16)

    names = [[phase.name for phase in found.phases] for found in (without, with_kl, adapter)]
    assert ["reference_log_probs" in phases for phases in names] == [False, True, False]
    assert sizes(with_kl, "reference_log_probs")["reference"] == 4 * 7_615_616_512


def test_a_critic_costs_as_much_as_an_actor_without_its_head() -> None:
    found = estimate("ppo", preset="gpu-80gb", lora_rank=0)
    parts = sizes(found, "critic_update")

    head = 152_064 * 3584
    assert parts["critic_weights"] == 4 * (7_615_616_512 - head + 3584)
    assert "logits" not in parts


def test_a_pass_of_the_critic_has_the_tokens_that_the_parameter_says() -> None:
    few, many = (estimate("ppo", preset="gpu-80gb", max_tokens_per_gpu=tokens) for tokens in (4096, 16384))

    assert sizes(many, "critic_update")["activations"] == 4 * sizes(few, "critic_update")["activations"]
    assert sizes(many, "critic_update")["activations"] == sizes(many, "update")["activations"]


def test_preference_pairs_pass_together_beside_the_reference() -> None:
    found = estimate("dpo", preset="gpu-80gb", config=QWEN2_HALF_B, lora_rank=0)
    alone = estimate("orpo", preset="gpu-80gb", config=QWEN2_HALF_B, lora_rank=0)

    parts = sizes(found, "train")
    assert parts["reference"] == parts["weights"] == 4 * 494_032_768
    assert "reference" not in sizes(alone, "train")
    assert "logits" not in sizes(estimate("reward_model", preset="gpu-80gb", config=QWEN2_HALF_B), "train")


def test_a_reward_model_in_the_mixture_is_named_as_not_counted() -> None:
    def is_named(*rewards: dict[str, Any]) -> bool:
        found = estimate("grpo", preset="gpu-80gb", rewards=list(rewards))
        return any("reward model is not included" in text.en for text in found.assumptions)

    assert is_named({"name": "math"}, {"name": "reward_model", "options": {"model": "mdl_x"}})
    assert not is_named({"name": "math"})


def test_too_little_memory_is_a_warning_in_both_languages() -> None:
    tight = estimate(lora_rank=0, preset="gpu-80gb", memory_bytes=24 * GIB)
    roomy = estimate(config=QWEN2_HALF_B, preset="gpu-80gb", memory_bytes=80 * GIB)

    (warning,) = tight.warnings
    assert "more than" in warning.en
    assert "超过" in warning.zh
    assert tight.available_bytes == 24 * GIB
    assert roomy.warnings == []


def test_every_recipe_and_preset_has_an_estimate() -> None:
    for recipe in list_recipes():
        for preset in recipe.presets:
            platform = "cpu" if preset.id == "cpu-tiny" else "cuda"
            found = estimate(
                recipe.id, preset=preset.id, platform=platform, gpus=preset.gpus, config=QWEN2_HALF_B
            )
            assert found.per_gpu_bytes == max(phase.total_bytes for phase in found.phases)
            assert found.peak_bytes == found.per_gpu_bytes * preset.gpus
            for phase in found.phases:
                assert phase.total_bytes == sum(part.bytes for part in phase.parts)
                assert all(part.bytes >= 0 for part in phase.parts)
                assert all(part.how.en and part.how.zh for part in phase.parts)


@pytest.mark.parametrize(
    "config",
    [{}, {"model_type": "llama"}, {**LLAMA3_8B, "hidden_size": "large"}, {**LLAMA3_8B, "vocab_size": -1}],
)
def test_a_configuration_that_says_too_little_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(UnknownArchitecture):
        read_architecture(config)


@pytest.mark.parametrize("recipe", ["grpo", "ppo", "sft"])
def test_a_group_that_is_empty_or_a_setting_that_is_missing_is_named(recipe: str) -> None:
    composed = compose_recipe(recipe)
    refused = set()
    for place, config in _with_something_missing(composed.config):
        try:
            read_plan(composed.engine, config, recipe=recipe, platform="cuda", gpus=1, env={})
        except IncompleteConfiguration:
            refused.add(place)
    needed = {"algorithm", "algorithm.use_kl_in_reward", "critic.enable"} if recipe != "sft" else {"data"}
    assert needed <= refused


def _with_something_missing(
    tree: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tree with one of its groups empty, and with one of its keys gone: each of them."""
    for name, value in tree.items():
        place = ".".join((*path, name))
        yield place, {key: each for key, each in tree.items() if key != name}
        if isinstance(value, dict):
            yield place, {**tree, name: {}}
            for inner, changed in _with_something_missing(value, (*path, name)):
                yield inner, {**tree, name: changed}


def test_an_unknown_family_is_counted_like_llama_and_says_so() -> None:
    found = estimate(config={**LLAMA3_8B, "model_type": "somethingnew"}, preset="gpu-80gb")

    assert any("somethingnew" in text.en for text in found.assumptions)


SHAPES = st.fixed_dictionaries(
    {
        "model_type": st.sampled_from(["llama", "qwen2", "qwen3", "gemma", "other"]),
        "hidden_size": st.integers(1, 64).map(lambda n: 64 * n),
        "intermediate_size": st.integers(1, 20_000),
        "num_hidden_layers": st.integers(1, 80),
        "num_attention_heads": st.integers(1, 64),
        "num_key_value_heads": st.integers(1, 16),
        "vocab_size": st.integers(2, 200_000),
        "tie_word_embeddings": st.booleans(),
    }
)


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.integers(1, 32), st.integers(1, 32), st.booleans())
def test_more_tokens_never_need_less(
    shape: dict[str, Any], few: int, more: int, is_checkpointed: bool
) -> None:
    low, high = sorted((few, more))
    options = {"dynamic_batch": False, "gradient_checkpointing": is_checkpointed, "preset": "gpu-80gb"}

    small = estimate(config=shape, micro_batch_size=low, **options)
    large = estimate(config=shape, micro_batch_size=high, **options)

    assert small.per_gpu_bytes <= large.per_gpu_bytes


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.integers(1, 64))
def test_an_adapter_checkpoints_and_more_gpus_never_need_more(shape: dict[str, Any], rank: int) -> None:
    full = estimate(config=shape, preset="gpu-80gb", lora_rank=0, gradient_checkpointing=False)
    checkpointed = estimate(config=shape, preset="gpu-80gb", lora_rank=0, gradient_checkpointing=True)
    split = estimate(config=shape, preset="gpu-80gb", lora_rank=0, gradient_checkpointing=False, gpus=8)

    layers = shape["num_hidden_layers"]
    assert checkpointed.per_gpu_bytes <= full.per_gpu_bytes or layers == 1
    assert split.per_gpu_bytes <= full.per_gpu_bytes
    assert read_architecture(shape).count_lora(rank) <= read_architecture(shape).count_lora(rank + 1)


def test_the_largest_weight_of_a_folder_is_that_of_its_embeddings(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9,
        "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49_152,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))

    architecture = find_architecture(tmp_path)

    assert architecture is not None
    assert architecture.largest_weight == 49_152 * 576


@pytest.mark.parametrize("text", [None, "{", "[]", "[" * 100_000, '{"model_type": "t5"}'])
def test_a_folder_that_does_not_say_its_shape_has_no_architecture(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)

    assert find_architecture(tmp_path) is None
