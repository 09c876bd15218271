"""Checks the adapters and how the rollout engine is spread over the GPUs."""

from typing import Any

from trellis_recipes.checks.batches import has_critic
from trellis_recipes.findings import Findings, largest_divisor, warn_of_adapter

#: Largest rank that vLLM accepts.
MAX_LORA_RANK = 512


def check_rl_model(findings: Findings, config: dict[str, Any], gpus: int) -> None:
    """Check the adapter rank and tensor parallelism."""
    model, rollout = config["actor_rollout_ref"]["model"], config["actor_rollout_ref"]["rollout"]
    if model["lora_rank"] > MAX_LORA_RANK:
        findings.error(
            "lora_rank_too_large",
            "params.lora_rank",
            f"The rollout engine supports LoRA ranks up to {MAX_LORA_RANK}.",
            str(MAX_LORA_RANK),
        )
    if model["lora_rank"]:
        warn_of_adapter(findings)
    if has_critic(config) and config["critic"]["model"]["lora_rank"]:
        # verl declares every adapter to be a causal model's; PEFT refuses that for a model with a value head.
        findings.error(
            "critic_adapter_unsupported",
            "overrides.critic.model.lora_rank",
            "The engine doesn't support LoRA on the critic; it is always fully fine-tuned.",
            "0",
        )
    parallel = rollout["tensor_model_parallel_size"] * rollout["data_parallel_size"]
    if gpus % parallel:
        findings.error(
            "tensor_parallel_not_divisor",
            "params.tensor_parallel",
            f"{gpus} GPUs can't be divided into rollout replicas of {parallel}.",
            str(largest_divisor(gpus, parallel)),
        )
