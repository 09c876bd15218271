"""Checks how sequences, heads and weights are divided over GPUs: what verl and vLLM refuse after loading."""

from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.checks.batches import has_critic
from trellis_recipes.findings import Findings, largest_divisor
from trellis_recipes.memory.settings import SEQUENCE_PARALLEL, group, positive, sequence_parallel
from trellis_recipes.request import ComposeRequest


def check_parallel(
    findings: Findings, engine: Engine, config: dict[str, Any], request: ComposeRequest
) -> None:
    """Check sequence parallelism, FSDP groups and tensor parallelism against the GPUs and the heads."""
    if engine is Engine.VERL_SFT:
        _check_trainer(findings, "engine", {}, config["engine"], config["model"], request)
    if engine is not Engine.VERL_PPO:
        return
    parts = config["actor_rollout_ref"]
    actor = parts["actor"]
    prefix = "actor_rollout_ref.actor.fsdp_config"
    _check_trainer(findings, prefix, actor, group(actor, "fsdp_config"), parts["model"], request)
    if has_critic(config):
        critic = config["critic"]
        _check_trainer(findings, "critic.fsdp", critic, group(critic, "fsdp"), critic["model"], request)
    _check_rollout_heads(findings, parts["rollout"], request)


def _check_trainer(
    findings: Findings,
    prefix: str,
    part: dict[str, Any],
    engine: dict[str, Any],
    model: dict[str, Any],
    request: ComposeRequest,
) -> None:
    size = engine.get("fsdp_size", -1)
    if isinstance(size, int) and 0 <= size < request.gpus and (size == 0 or request.gpus % size):
        findings.error(
            "fsdp_size_not_divisor",
            f"overrides.{prefix}.fsdp_size",
            f"{request.gpus} GPUs can't be divided into FSDP groups of {size}.",
            str(largest_divisor(request.gpus, size) if size else -1),
        )
    parallel = sequence_parallel(part, engine)
    if parallel > 1:
        _check_sequences(findings, f"overrides.{prefix}.{SEQUENCE_PARALLEL}", parallel, model, request)


def _check_sequences(
    findings: Findings, field: str, parallel: int, model: dict[str, Any], request: ComposeRequest
) -> None:
    """Check Ulysses (arXiv:2309.14509): a GPU of a group has a part of the sequence and of the heads."""
    if request.gpus % parallel:
        findings.error(
            "sequence_parallel_not_divisor",
            field,
            f"{request.gpus} GPUs can't be divided into groups of {parallel} that share a sequence.",
            str(largest_divisor(request.gpus, parallel)),
        )
    if not model.get("use_remove_padding"):
        findings.error(
            "sequence_parallel_needs_packing",
            field,
            "Sequence parallelism works on packed sequences only (use_remove_padding), which this run "
            "doesn't have: packing needs a GPU and the flash-attn package.",
            "1",
        )
    shape = request.architecture
    if shape is None:
        return
    keys = shape.key_value_heads
    if shape.heads % parallel or (keys % parallel and parallel % keys):
        findings.error(
            "sequence_parallel_heads",
            field,
            f"The model has {shape.heads} attention heads and {keys} key-value heads, which can't be divided "
            f"over {parallel} GPUs that share a sequence.",
            str(largest_divisor(shape.heads, parallel)),
        )


def _check_rollout_heads(findings: Findings, rollout: dict[str, Any], request: ComposeRequest) -> None:
    parallel = positive(rollout.get("tensor_model_parallel_size"), 1)
    shape = request.architecture
    if shape is not None and shape.heads % parallel:
        fitting = [
            size for size in range(1, parallel) if shape.heads % size == 0 and request.gpus % size == 0
        ]
        findings.error(
            "tensor_parallel_heads",
            "params.tensor_parallel",
            f"The model has {shape.heads} attention heads, which the rollout engine can't divide over "
            f"{parallel} GPUs.",
            str(fitting[-1]),
        )
