"""Checks how the prompts of an RL step are split into updates and passes, for the policy and the critic."""

from typing import Any

from trellis_recipes.findings import Findings, largest_divisor
from trellis_recipes.memory.settings import group, sequence_parallel

MICRO_BATCH = "params.micro_batch_size"
CRITIC_MICRO_BATCH = "params.critic_micro_batch_size"


def has_critic(config: dict[str, Any]) -> bool:
    """Tell whether verl trains a critic with this configuration."""
    is_enabled = config["critic"]["enable"]
    return bool(config["algorithm"]["adv_estimator"] == "gae" if is_enabled is None else is_enabled)


def has_reference(config: dict[str, Any]) -> bool:
    """Tell whether a copy of the initial model is kept for comparison."""
    return bool(
        config["algorithm"]["use_kl_in_reward"] or config["actor_rollout_ref"]["actor"]["use_kl_loss"]
    )


def check_batches(findings: Findings, config: dict[str, Any], gpus: int) -> None:
    """Check that the prompts of a step, an update and a pass can be split over the GPUs."""
    actor, rollout = config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    batch, group, mini = config["data"]["train_batch_size"], rollout["n"], actor["ppo_mini_batch_size"]
    if (batch * group) % gpus:
        findings.error(
            "batch_not_divisible",
            "params.batch_size",
            f"{batch} prompts × {group} responses can't be divided evenly across {gpus} GPUs.",
        )
    _check_updates(findings, "update", batch, mini, group, gpus)
    if not actor["use_dynamic_bsz"] and (mini * group) % gpus == 0:
        _check_passes(findings, MICRO_BATCH, mini * group // gpus, _policy_passes(config))
    if has_critic(config):
        _check_critic(findings, config, gpus)


def check_lengths(findings: Findings, config: dict[str, Any]) -> None:
    """Check that the longest prompt plus response fits the rollout engine's limit and the tokens per pass."""
    parts, data = config["actor_rollout_ref"], config["data"]
    total = data["max_prompt_length"] + data["max_response_length"]
    limit = parts["rollout"]["max_model_len"]
    if limit is not None and total > limit:
        findings.error(
            "too_long_for_rollout",
            "params.max_response_length",
            f"Prompt plus response can have {total} tokens, but the rollout engine is "
            f"limited to {limit} (actor_rollout_ref.rollout.max_model_len).",
        )
    for tokens, field in _tokens_per_pass(config).items():
        if tokens < total:
            findings.error(
                "tokens_per_pass_too_small",
                field,
                f"Prompt plus response can have {total} tokens, more than the {tokens} per micro-batch.",
                str(total),
            )


def _check_updates(findings: Findings, name: str, batch: int, mini: int, group: int, gpus: int) -> None:
    field = "params.mini_batch_size"
    if mini > batch:
        findings.error(
            "mini_batch_too_large",
            field,
            f"An {name} of {mini} prompts is larger than the batch size of {batch} prompts.",
            str(batch),
        )
    elif batch % mini:
        findings.warn(
            "uneven_mini_batches",
            field,
            f"{batch} prompts can't be divided evenly into {name}s of {mini}; the last one is padded.",
            str(largest_divisor(batch, mini)),
        )
    if (mini * group) % gpus:
        findings.error(
            "batch_not_divisible",
            field,
            f"{mini} prompts × {group} responses per {name} can't be divided evenly across {gpus} GPUs.",
        )


def _policy_passes(config: dict[str, Any]) -> list[Any]:
    parts = config["actor_rollout_ref"]
    sizes = [
        parts["actor"]["ppo_micro_batch_size_per_gpu"],
        parts["rollout"]["log_prob_micro_batch_size_per_gpu"],
    ]
    if has_reference(config):
        sizes.append(parts["ref"]["log_prob_micro_batch_size_per_gpu"])
    return sizes


def _check_passes(findings: Findings, field: str, per_gpu: int, sizes: list[Any]) -> None:
    for size in dict.fromkeys(sizes):
        if not isinstance(size, int) or size < 1 or per_gpu % size:
            findings.error(
                "micro_batch_not_divisor",
                field,
                f"{per_gpu} responses per update and GPU can't be divided into micro-batches of {size}.",
                str(largest_divisor(per_gpu, size if isinstance(size, int) else 1)),
            )


def _check_critic(findings: Findings, config: dict[str, Any], gpus: int) -> None:
    """Check the critic's own batch sizes; verl reads its micro-batch sizes from its engine (``fsdp``)."""
    critic, engine = config["critic"], config["critic"]["fsdp"]
    group, mini = config["actor_rollout_ref"]["rollout"]["n"], critic["ppo_mini_batch_size"]
    actor = config["actor_rollout_ref"]["actor"]
    is_separate = mini != actor["ppo_mini_batch_size"]
    if is_separate:
        _check_updates(
            findings, "update of the critic", config["data"]["train_batch_size"], mini, group, gpus
        )
    if _is_packed(engine) or (mini * group) % gpus:
        return
    sizes = [engine.get("micro_batch_size_per_gpu"), engine.get("infer_micro_batch_size_per_gpu")]
    checked = [] if is_separate or actor["use_dynamic_bsz"] else _policy_passes(config)
    own = [size for size in sizes if size not in checked]
    _check_passes(findings, CRITIC_MICRO_BATCH, mini * group // gpus, own)


def _is_packed(engine: dict[str, Any]) -> bool:
    """Tell whether the critic's passes are packed by tokens, which is the default."""
    return bool(engine.get("use_dynamic_bsz", True))


def _tokens_per_pass(config: dict[str, Any]) -> dict[int, str]:
    """Return the limits on the tokens of a pass, each with the parameter that sets it.

    GPUs that share a sequence share a pass: its limit is theirs together.
    """
    parts = config["actor_rollout_ref"]
    limits = []
    if parts["actor"]["use_dynamic_bsz"]:
        limits += [
            parts["actor"]["ppo_max_token_len_per_gpu"],
            parts["rollout"]["log_prob_max_token_len_per_gpu"],
        ]
        if has_reference(config):
            limits.append(parts["ref"]["log_prob_max_token_len_per_gpu"])
    shared = sequence_parallel(parts["actor"], group(parts["actor"], "fsdp_config"))
    found = {limit * shared: "params.max_tokens_per_gpu" for limit in limits}
    if has_critic(config) and _is_packed(config["critic"]["fsdp"]):
        critic = config["critic"].get("ppo_infer_max_token_len_per_gpu", 32768)
        critic *= sequence_parallel(config["critic"], config["critic"]["fsdp"])
        found.setdefault(critic, "params.critic_max_tokens_per_gpu")
    return found
