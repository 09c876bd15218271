"""Checks settings against each other: what verl would refuse minutes into a run, and what rarely works."""

import re
from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.issues import Issue
from trellis_recipes.knobs import Value
from trellis_recipes.request import ComposeRequest

#: Above this a full fine-tuning by RL collapses on models of any size that people train.
HIGH_RL_LEARNING_RATE = 1e-3
HIGH_LORA_LEARNING_RATE = 2e-3
#: Largest rank that vLLM accepts.
MAX_LORA_RANK = 512


class Findings:
    """Errors and warnings in the order in which they were found."""

    def __init__(self) -> None:
        self.errors: list[Issue] = []
        self.warnings: list[Issue] = []

    def error(self, code: str, field: str, message: str, suggestion: str | None = None) -> None:
        """Something that cannot run."""
        self.errors.append(Issue(code=code, field=field, message=message, suggestion=suggestion))

    def warn(self, code: str, field: str, message: str, suggestion: str | None = None) -> None:
        """Something that runs, but hardly as meant."""
        self.warnings.append(Issue(code=code, field=field, message=message, suggestion=suggestion))


def check_config(
    engine: Engine,
    config: dict[str, Any],
    knobs: dict[str, Value],
    request: ComposeRequest,
    *,
    holds_out: bool,
) -> Findings:
    """Findings on a resolved configuration; ``holds_out`` where validation rows come off the training."""
    findings = Findings()
    held_out = int(knobs.get("validation_rows") or 0) if holds_out else 0
    _check_rows(findings, config, request, held_out)
    if engine is Engine.VERL_PPO:
        _check_batches(findings, config, request.gpus)
        _check_lengths(findings, config)
        _check_algorithm(findings, config, request)
        _check_reward(findings, knobs)
        _check_rl_model(findings, config, request.gpus)
    else:
        _check_supervised(findings, config, request)
    return findings


def _check_rows(findings: Findings, config: dict[str, Any], request: ComposeRequest, held_out: int) -> None:
    if request.row_count is None:
        return
    rows, batch = request.row_count - held_out, config["data"]["train_batch_size"]
    if rows < batch:
        rest = f" after {held_out} are held out for validation" if held_out else ""
        findings.error(
            "too_few_rows",
            "params.batch_size",
            f"The dataset has {max(rows, 0)} rows for training{rest}, fewer than the {batch} of one step.",
        )


def _check_batches(findings: Findings, config: dict[str, Any], gpus: int) -> None:
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    batch, group, mini = config["data"]["train_batch_size"], rollout["n"], actor["ppo_mini_batch_size"]
    if mini > batch:
        findings.error(
            "mini_batch_too_large",
            "params.mini_batch_size",
            f"An update of {mini} prompts is larger than the {batch} prompts of a step.",
            str(batch),
        )
    elif batch % mini:
        findings.warn(
            "uneven_mini_batches",
            "params.mini_batch_size",
            f"{batch} prompts do not split evenly into updates of {mini}; the last is filled with padding.",
            str(_largest_divisor(batch, mini)),
        )
    if (batch * group) % gpus:
        findings.error(
            "batch_not_divisible",
            "params.batch_size",
            f"{batch} prompts × {group} responses cannot be split evenly over {gpus} GPUs.",
        )
    if (mini * group) % gpus:
        findings.error(
            "batch_not_divisible",
            "params.mini_batch_size",
            f"{mini} prompts × {group} responses of an update cannot be split evenly over {gpus} GPUs.",
        )
    elif not actor["use_dynamic_bsz"]:
        _check_micro_batches(findings, config, mini * group // gpus)


def _check_micro_batches(findings: Findings, config: dict[str, Any], per_gpu: int) -> None:
    parts = config["actor_rollout_ref"]
    sizes = {
        "actor.ppo_micro_batch_size_per_gpu": parts["actor"]["ppo_micro_batch_size_per_gpu"],
        "rollout.log_prob_micro_batch_size_per_gpu": parts["rollout"]["log_prob_micro_batch_size_per_gpu"],
    }
    if parts["actor"]["use_kl_loss"]:
        sizes["ref.log_prob_micro_batch_size_per_gpu"] = parts["ref"]["log_prob_micro_batch_size_per_gpu"]
    for size in dict.fromkeys(sizes.values()):
        if not isinstance(size, int) or size < 1 or per_gpu % size:
            findings.error(
                "micro_batch_not_divisor",
                "params.micro_batch_size",
                f"The {per_gpu} responses of an update on one GPU cannot be split into passes of {size}.",
                str(_largest_divisor(per_gpu, size if isinstance(size, int) else 1)),
            )


def _check_lengths(findings: Findings, config: dict[str, Any]) -> None:
    rollout, data, actor = (
        config["actor_rollout_ref"]["rollout"],
        config["data"],
        config["actor_rollout_ref"]["actor"],
    )
    total = data["max_prompt_length"] + data["max_response_length"]
    limit = rollout["max_model_len"]
    if limit is not None and total > limit:
        findings.error(
            "too_long_for_sampler",
            "params.max_response_length",
            f"Prompt and response may have {total} tokens, but the sampler is limited to {limit} "
            "(actor_rollout_ref.rollout.max_model_len).",
        )
    if actor["use_dynamic_bsz"] and actor["ppo_max_token_len_per_gpu"] < total:
        findings.error(
            "tokens_per_pass_too_small",
            "params.max_tokens_per_gpu",
            f"One prompt and response may have {total} tokens, more than the "
            f"{actor['ppo_max_token_len_per_gpu']} of one pass.",
            str(total),
        )


def _check_algorithm(findings: Findings, config: dict[str, Any], request: ComposeRequest) -> None:
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    if config["algorithm"]["adv_estimator"] == "grpo" and rollout["n"] == 1:
        findings.error(
            "group_of_one",
            "params.group_size",
            "A group of one response has no mean to compare with, so nothing would be learned.",
            "8",
        )
    learning_rate, rank = actor["optim"]["lr"], config["actor_rollout_ref"]["model"]["lora_rank"]
    limit = HIGH_LORA_LEARNING_RATE if rank else HIGH_RL_LEARNING_RATE
    if learning_rate >= limit:
        findings.warn(
            "high_learning_rate",
            "params.learning_rate",
            f"A learning rate of {learning_rate:g} usually makes the policy collapse in RL.",
            f"{limit / 10:g}",
        )
    if rollout["top_p"] < 1 or rollout["top_k"] > 0:
        findings.warn(
            "truncated_sampling",
            "params.top_p",
            "With a truncated distribution the sampled probabilities differ from those of the policy.",
            "1.0",
        )
    low_high = {actor["clip_ratio_low"], actor["clip_ratio_high"]}
    if "actor_rollout_ref.actor.clip_ratio" in request.overrides and actor["clip_ratio"] not in low_high:
        findings.warn(
            "ineffective_clip_ratio",
            "overrides.actor_rollout_ref.actor.clip_ratio",
            "clip_ratio_low and clip_ratio_high take its place; set those.",
        )


def _check_reward(findings: Findings, knobs: dict[str, Value]) -> None:
    pattern = knobs.get("reward_pattern")
    if knobs.get("reward") == "regex" and not pattern:
        findings.error("pattern_missing", "params.reward_pattern", "The regex reward needs a pattern.")
    if isinstance(pattern, str) and pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            findings.error("bad_pattern", "params.reward_pattern", f"The pattern is not valid: {error}.")
    if knobs.get("format_weight") == 1.0:
        findings.warn("only_format", "params.format_weight", "The answer itself earns nothing.")


def _check_rl_model(findings: Findings, config: dict[str, Any], gpus: int) -> None:
    model, rollout = config["actor_rollout_ref"]["model"], config["actor_rollout_ref"]["rollout"]
    if model["lora_rank"] > MAX_LORA_RANK:
        findings.error(
            "lora_rank_too_large",
            "params.lora_rank",
            f"The sampler accepts ranks up to {MAX_LORA_RANK}.",
            str(MAX_LORA_RANK),
        )
    if model["lora_rank"]:
        _warn_of_adapter(findings)
    parallel = rollout["tensor_model_parallel_size"] * rollout["data_parallel_size"]
    if gpus % parallel:
        findings.error(
            "tensor_parallel_not_divisor",
            "params.tensor_parallel",
            f"{gpus} GPUs cannot be split into samplers of {parallel}.",
            str(_largest_divisor(gpus, parallel)),
        )


def _check_supervised(findings: Findings, config: dict[str, Any], request: ComposeRequest) -> None:
    data, rank = config["data"], config["model"]["lora_rank"]
    if data["train_batch_size"] % request.gpus:
        findings.error(
            "batch_not_divisible",
            "params.batch_size",
            f"{data['train_batch_size']} conversations cannot be split evenly over {request.gpus} GPUs.",
        )
    elif not data["use_dynamic_bsz"]:
        per_gpu, micro = data["train_batch_size"] // request.gpus, data["micro_batch_size_per_gpu"]
        if micro < 1 or per_gpu % micro:
            findings.error(
                "micro_batch_not_divisor",
                "params.micro_batch_size",
                f"The {per_gpu} conversations of a step on one GPU cannot be split into passes of {micro}.",
                str(_largest_divisor(per_gpu, micro)),
            )
    if data["use_dynamic_bsz"] and data["max_token_len_per_gpu"] < data["max_length"]:
        findings.error(
            "tokens_per_pass_too_small",
            "params.max_tokens_per_gpu",
            f"One conversation may have {data['max_length']} tokens, more than the "
            f"{data['max_token_len_per_gpu']} of one pass.",
            str(data["max_length"]),
        )
    if rank:
        _warn_of_adapter(findings)


def _warn_of_adapter(findings: Findings) -> None:
    findings.warn(
        "adapter_checkpoint",
        "params.lora_rank",
        "Checkpoints hold base and adapter for resuming; merge them before using one as a model.",
    )


def _largest_divisor(number: int, at_most: int) -> int:
    return next(size for size in range(max(1, min(number, at_most)), 0, -1) if number % size == 0)
