"""Checks what an RL algorithm asks of its settings: groups, critic, KL, clipping, dynamic sampling."""

from typing import Any

from trellis_recipes.checks.batches import has_critic
from trellis_recipes.findings import Findings
from trellis_recipes.request import ComposeRequest

#: Above this a full fine-tuning by RL collapses on models of any size that people train.
HIGH_RL_LEARNING_RATE = 1e-3
HIGH_LORA_LEARNING_RATE = 2e-3
#: Estimators that compare the responses to a prompt with each other.
GROUPED = frozenset(
    {
        "gpg",
        "grpo",
        "grpo_passk",
        "grpo_vectorized",
        "opo",
        "reinforce_plus_plus_baseline",
        "rloo",
        "rloo_vectorized",
    }
)
#: Estimators of verl that need columns which its trainer does not collect.
WITHOUT_COLUMNS = frozenset({"gdpo", "optimal_token_baseline", "tir_optimal_token_baseline"})
#: GSPO's ratio is a mean over a response's tokens and hardly leaves 1; a range this wide never clips.
WIDE_SEQUENCE_CLIP = 0.05

_NO_PULL = "This estimator has zero expected gradient, so it doesn't regularize the policy in the loss"
#: Estimators of the divergence whose gradient, in the loss, is not that of the divergence.
_WITHOUT_PULL = {
    "kl": _NO_PULL,
    "k1": _NO_PULL,
    "abs": "In the loss, this estimator minimizes a different distance, not KL",
}


def check_algorithm(findings: Findings, config: dict[str, Any], request: ComposeRequest) -> None:
    """Check all settings that belong to the algorithm."""
    _check_group(findings, config)
    _check_estimator(findings, config)
    _check_learning_rate(findings, config)
    _check_sampling(findings, config)
    _check_clipping(findings, config, request)
    _check_kl(findings, config)
    _check_correction(findings, config)
    _check_dynamic_sampling(findings, config)
    _check_critic_warmup(findings, config)


def _check_group(findings: Findings, config: dict[str, Any]) -> None:
    estimator, group = config["algorithm"]["adv_estimator"], config["actor_rollout_ref"]["rollout"]["n"]
    if group == 1 and (estimator in GROUPED or config["algorithm"]["filter_groups"]["enable"]):
        findings.error(
            "group_of_one",
            "params.group_size",
            "A group size of 1 has no baseline, so the reward gives no learning signal.",
            "8",
        )


def _check_estimator(findings: Findings, config: dict[str, Any]) -> None:
    estimator = config["algorithm"]["adv_estimator"]
    field = "overrides.algorithm.adv_estimator"
    if estimator in WITHOUT_COLUMNS:
        findings.error(
            "estimator_not_supported", field, f"verl's trainer doesn't collect the data '{estimator}' needs."
        )
    mode = config["trainer"]["v1"]["trainer_mode"]
    if estimator == "remax" and mode != "sync":
        findings.error(
            "estimator_needs_sync",
            "overrides.trainer.v1.trainer_mode",
            f"ReMax needs the policy's greedy response in the same step, which '{mode}' "
            "mode doesn't provide.",
            "sync",
        )


def _check_learning_rate(findings: Findings, config: dict[str, Any]) -> None:
    rate, rank = (
        config["actor_rollout_ref"]["actor"]["optim"]["lr"],
        config["actor_rollout_ref"]["model"]["lora_rank"],
    )
    limit = HIGH_LORA_LEARNING_RATE if rank else HIGH_RL_LEARNING_RATE
    if rate >= limit:
        findings.warn(
            "high_learning_rate",
            "params.learning_rate",
            f"A learning rate of {rate:g} usually makes the policy collapse in RL.",
            f"{limit / 10:g}",
        )


def _check_sampling(findings: Findings, config: dict[str, Any]) -> None:
    rollout = config["actor_rollout_ref"]["rollout"]
    if rollout["top_p"] < 1 or rollout["top_k"] > 0:
        findings.warn(
            "truncated_sampling",
            "params.top_p",
            "With truncated sampling, rollout probabilities differ from the policy's.",
            "1.0",
        )


def _check_clipping(findings: Findings, config: dict[str, Any], request: ComposeRequest) -> None:
    actor = config["actor_rollout_ref"]["actor"]
    low_high = {actor["clip_ratio_low"], actor["clip_ratio_high"]}
    if "actor_rollout_ref.actor.clip_ratio" in request.overrides and actor["clip_ratio"] not in low_high:
        findings.warn(
            "ineffective_clip_ratio",
            "overrides.actor_rollout_ref.actor.clip_ratio",
            "Overridden by clip_ratio_low and clip_ratio_high; set those instead.",
        )
    mode = actor["policy_loss"]["loss_mode"]
    if mode == "gspo" and max(low_high) > WIDE_SEQUENCE_CLIP:
        findings.warn(
            "wide_sequence_clip",
            "params.clip_ratio_high",
            "Sequence-level ratios stay close to 1; a range this wide never clips.",
            "0.0004",
        )
    if mode == "sapo" and actor["tau_neg"] < actor["tau_pos"]:
        findings.warn(
            "gate_favours_worse",
            "params.temperature_negative",
            "Negative advantages keep more weight than positive ones, which destabilizes training.",
            f"{actor['tau_pos'] * 1.05:g}",
        )


def _check_kl(findings: Findings, config: dict[str, Any]) -> None:
    actor, algorithm = config["actor_rollout_ref"]["actor"], config["algorithm"]
    if actor["use_kl_loss"] and algorithm["use_kl_in_reward"]:
        findings.warn("kl_twice", "params.use_kl_loss", "KL is penalized in both the loss and the reward.")
    if actor["use_kl_loss"] and actor["kl_loss_type"] in _WITHOUT_PULL:
        findings.warn(
            "kl_without_pull",
            "params.kl_estimator",
            f"{_WITHOUT_PULL[actor['kl_loss_type']]}; 'low_var_kl+' has the divergence's own gradient.",
            "low_var_kl+",
        )
    unused = {
        "params.kl_coefficient": actor["use_kl_loss"] and actor["kl_loss_coef"] == 0,
        "params.kl_reward_coefficient": algorithm["use_kl_in_reward"]
        and algorithm["kl_ctrl"]["kl_coef"] == 0,
    }
    for field, is_unused in unused.items():
        if is_unused:
            findings.warn("kl_without_weight", field, "KL is computed in every step but has a weight of 0.")


def _check_correction(findings: Findings, config: dict[str, Any]) -> None:
    correction = config["algorithm"].get("rollout_correction") or {}
    if correction.get("bypass_mode") and correction.get("rollout_is"):
        findings.error(
            "nothing_to_correct",
            "params.importance_correction",
            "Old log-probs from the rollout engine already include the correction.",
            "none",
        )


def _check_dynamic_sampling(findings: Findings, config: dict[str, Any]) -> None:
    groups, model = config["algorithm"]["filter_groups"], config["reward"]["reward_model"]
    if not groups["enable"]:
        return
    if model["enable"] and not model["enable_resource_pool"]:
        findings.error(
            "filter_needs_reward",
            "params.dynamic_sampling",
            "A reward model on the policy's GPUs scores after generation, too late for dynamic sampling.",
        )
    if groups["max_num_gen_batches"] == 1:
        findings.error(
            "no_replacements",
            "params.max_generation_batches",
            "With only one generation batch, no prompts can be replaced; allow more or "
            "disable dynamic sampling.",
            "10",
        )
    elif 0 < groups["max_num_gen_batches"] < groups["max_inflight_gen_batches"]:
        findings.error(
            "more_at_once_than_allowed",
            "params.inflight_generation_batches",
            f"{groups['max_inflight_gen_batches']} concurrent batches exceed the maximum of "
            f"{groups['max_num_gen_batches']} per step.",
            str(groups["max_num_gen_batches"]),
        )


def _check_critic_warmup(findings: Findings, config: dict[str, Any]) -> None:
    warmup, total = config["trainer"]["critic_warmup"], config["trainer"]["total_training_steps"]
    if not has_critic(config) and warmup > 0:
        findings.error(
            "warmup_without_critic",
            "overrides.trainer.critic_warmup",
            "This recipe has no critic, so a critic warm-up only delays the policy.",
            "0",
        )
    elif total is not None and warmup > total:
        findings.error(
            "policy_never_trained",
            "params.critic_warmup",
            f"The policy's first update would be at step {warmup}, after the last step ({total}).",
            str(total // 10),
        )
