"""What cannot run is refused before launch, and what rarely works is warned of."""

from collections.abc import Callable

import pytest
from trellis_recipes.compose import ComposeRequest, compose
from trellis_testing.issues import codes

Build = Callable[..., ComposeRequest]


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"params": {"mini_batch_size": 64}}, "mini_batch_too_large"),
        ({"params": {"micro_batch_size": 48}}, "micro_batch_not_divisor"),
        (
            {
                "params": {"batch_size": 5, "mini_batch_size": 4, "group_size": 3, "dynamic_batch": True},
                "gpus": 2,
            },
            "batch_not_divisible",
        ),
        ({"params": {"group_size": 1, "micro_batch_size": 16}}, "group_of_one"),
        ({"params": {"dynamic_batch": True, "max_tokens_per_gpu": 527}}, "tokens_per_pass_too_small"),
        ({"params": {"tensor_parallel": 2}}, "tensor_parallel_not_divisor"),
        ({"params": {"reward": "regex"}}, "pattern_missing"),
        ({"params": {"reward": "regex", "reward_pattern": "("}}, "bad_pattern"),
        ({"params": {"reward": "regex", "reward_pattern": "a{99999999999999}"}}, "bad_pattern"),
        ({"params": {"reward": "regex", "reward_pattern": "(" * 3000 + ")" * 3000}}, "bad_pattern"),
        ({"overrides": {"actor_rollout_ref.rollout.max_model_len": 527}}, "too_long_for_rollout"),
        *[
            ({"recipe": recipe, "params": {"group_size": 1, "micro_batch_size": 16}}, "group_of_one")
            for recipe in ("dr_grpo", "dapo", "gspo", "cispo", "sapo", "reinforce_plus_plus_baseline")
        ],
        *[
            ({"recipe": recipe, "params": {"group_size": 1, "micro_batch_size": 32}}, "group_of_one")
            for recipe in ("rloo", "opo", "gpg")
        ],
        ({"recipe": "ppo", "params": {"micro_batch_size": 48}}, "micro_batch_not_divisor"),
        ({"recipe": "ppo", "overrides": {"critic.ppo_mini_batch_size": 256}}, "mini_batch_too_large"),
        (
            {"recipe": "ppo", "overrides": {"critic.fsdp.micro_batch_size_per_gpu": 48}},
            "micro_batch_not_divisor",
        ),
        (
            {
                "recipe": "ppo",
                "params": {"dynamic_batch": True},
                "overrides": {"critic.ppo_infer_max_token_len_per_gpu": 100},
            },
            "tokens_per_pass_too_small",
        ),
        ({"recipe": "ppo", "params": {"critic_warmup": 31}}, "policy_never_trained"),
        ({"recipe": "ppo", "overrides": {"critic.model.lora_rank": 8}}, "critic_adapter_unsupported"),
        ({"overrides": {"trainer.critic_warmup": 3}}, "warmup_without_critic"),
        ({"recipe": "ppo", "overrides": {"critic.use_dynamic_bsz": True}}, "ineffective_key"),
        ({"recipe": "dapo", "params": {"overlong_buffer": 17}}, "overlong_buffer_too_long"),
        ({"recipe": "dapo", "params": {"max_generation_batches": 1}}, "no_replacements"),
        ({"recipe": "dapo", "params": {"inflight_generation_batches": 11}}, "more_at_once_than_allowed"),
        (
            {"recipe": "dapo", "overrides": {"algorithm.filter_groups.metric": "grade"}},
            "filter_metric_unknown",
        ),
        (
            {"recipe": "remax", "overrides": {"trainer.v1.trainer_mode": "colocate_async"}},
            "estimator_needs_sync",
        ),
        ({"overrides": {"algorithm.adv_estimator": "gdpo"}}, "estimator_not_supported"),
        (
            {"params": {"old_log_probs": "sampler", "importance_correction": "token"}},
            "nothing_to_correct",
        ),
        ({"params": {"rewards": [{"name": "nosuch"}]}}, "unknown_reward"),
        ({"params": {"rewards": [{"weight": 2}]}}, "invalid_value"),
        ({"row_count": 34}, "too_few_rows"),
        ({"recipe": "nosuch"}, "unknown_recipe"),
        ({"preset": "gpu-24"}, "unknown_preset"),
        ({"recipe": "sft", "gpus": 3}, "batch_not_divisible"),
        ({"recipe": "sft", "params": {"max_tokens_per_gpu": 100}}, "tokens_per_pass_too_small"),
        (
            {"recipe": "sft", "params": {"packing": False, "micro_batch_size": 5}},
            "micro_batch_not_divisor",
        ),
        ({"recipe": "sft", "row_count": 34}, "too_few_rows"),
        ({"recipe": "sft", "params": {"quantize_base": True}}, "qlora_unsupported"),
        ({"recipe": "cpt", "params": {"max_tokens_per_gpu": 100}}, "tokens_per_pass_too_small"),
    ],
)
def test_what_cannot_run_is_refused_before_launch(choices: dict, code: str, request_for: Build) -> None:
    composition = compose(request_for(**choices))

    assert codes(composition.errors) == [code]


def test_few_documents_may_fill_many_blocks(request_for: Build) -> None:
    composition = compose(request_for(recipe="cpt", row_count=80))

    assert composition.errors == []
    assert composition.config["data"]["custom_cls"]["name"] == "DocumentBlocks"


@pytest.mark.parametrize("is_packed", [True, False])
def test_packing_joins_conversations_and_fills_passes_by_tokens(is_packed: bool, request_for: Build) -> None:
    config = compose(request_for(recipe="sft", params={"packing": is_packed})).config

    assert config["model"]["use_remove_padding"] is is_packed
    assert config["data"]["use_dynamic_bsz"] is is_packed


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"params": {"mini_batch_size": 24}}, "uneven_mini_batches"),
        ({"params": {"learning_rate": 1e-3}}, "high_learning_rate"),
        ({"params": {"lora_rank": 8}}, "adapter_checkpoint"),
        ({"params": {"top_p": 0.9}}, "truncated_sampling"),
        ({"recipe": "rloo", "params": {"use_kl_loss": True}}, "kl_twice"),
        ({"recipe": "rloo", "params": {"kl_reward_coefficient": 0}}, "kl_without_weight"),
        ({"params": {"use_kl_loss": True, "kl_estimator": "kl"}}, "kl_without_pull"),
        ({"params": {"use_kl_loss": True, "kl_estimator": "abs"}}, "kl_without_pull"),
        ({"recipe": "gspo", "params": {"clip_ratio_high": 0.2}}, "wide_sequence_clip"),
        ({"recipe": "sapo", "params": {"temperature_negative": 0.9}}, "gate_favours_worse"),
        ({"recipe": "dapo", "params": {"overlong_buffer": 16}}, "overlong_from_start"),
        ({"preset": "gpu-8x80gb", "gpus": 4, "platform": "cuda"}, "preset_gpus"),
        ({"preset": "cpu-tiny", "platform": "cuda"}, "preset_platform"),
        ({"preset": "gpu-24gb", "platform": "cpu"}, "preset_platform"),
        ({"overrides": {"algorithm.norm_adv_by_std_in_grpo": False}}, "changes_algorithm"),
    ],
)
def test_what_rarely_works_is_warned_of(choices: dict, code: str, request_for: Build) -> None:
    composition = compose(request_for(**choices))

    assert composition.errors == []
    assert code in codes(composition.warnings)


@pytest.mark.parametrize("reward", ["exact", "contains", "gsm8k", "math"])
def test_rewards_for_repeating_a_turn_of_a_conversation_are_warned_of(
    reward: str, request_for: Build
) -> None:
    composition = compose(request_for(params={"reward": reward}, has_uncheckable_answers=True))

    assert composition.errors == []
    (warning,) = [each for each in composition.warnings if each.code == "answers_not_checkable"]
    assert (warning.field, warning.suggestion) == ("recipe", "sft")
    assert reward in warning.message
    assert warning.message.startswith("The first row's answer")


def test_rewards_that_compare_nothing_suit_conversations(request_for: Build) -> None:
    judge = {"name": "judge", "weight": 1, "options": {"endpoint": "mine"}}
    composition = compose(request_for(params={"rewards": [judge]}, has_uncheckable_answers=True))

    assert "answers_not_checkable" not in codes(composition.warnings)


@pytest.mark.parametrize("estimator", ["low_var_kl", "low_var_kl+", "mse", "kl+", "abs+"])
def test_an_estimator_that_holds_the_policy_gives_no_warning(estimator: str, request_for: Build) -> None:
    composition = compose(request_for(params={"use_kl_loss": True, "kl_estimator": estimator}))

    assert composition.errors == []
    assert composition.config["actor_rollout_ref"]["actor"]["kl_loss_type"] == estimator
    assert "kl_without_pull" not in codes(composition.warnings)
