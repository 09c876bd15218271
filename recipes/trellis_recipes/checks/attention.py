"""Checks what a run does without flash-attn, the package that attends to packed sequences on a GPU."""

from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.checks.batches import has_critic
from trellis_recipes.findings import Findings
from trellis_recipes.memory.settings import group
from trellis_recipes.request import ComposeRequest

_FLASH = "flash_attention_2"


def check_attention(
    findings: Findings, engine: Engine, config: dict[str, Any], request: ComposeRequest
) -> None:
    """Say that passes are padded; refuse what asks for flash-attn by name, or for a critic of verl."""
    has_package = request.platform == "cuda" and request.has_flash_attention
    if engine is Engine.TRL and config.get("attn_implementation") == _FLASH and not has_package:
        findings.error(
            "flash_attention_missing",
            "overrides.attn_implementation",
            "Flash attention requires a GPU and the flash-attn package, which is not installed.",
            "sdpa",
        )
    if request.platform == "cpu" or request.has_flash_attention:
        return
    prefix = {Engine.VERL_PPO: "actor_rollout_ref.model", Engine.VERL_SFT: "model"}.get(engine)
    if prefix is None:
        return  # TRL and the retrieval engine run on PyTorch's own attention in any case
    model = config["actor_rollout_ref"]["model"] if engine is Engine.VERL_PPO else config["model"]
    if (
        model.get("use_remove_padding")
        or group(model, "override_config").get("attn_implementation") == _FLASH
    ):
        findings.error(
            "flash_attention_missing",
            f"overrides.{prefix}.use_remove_padding",
            "Sequence packing and flash attention require the flash-attn package, which is not installed.",
            "false",
        )
    elif engine is Engine.VERL_PPO and has_critic(config):
        findings.error(
            "critic_needs_flash_attention",
            "recipe",
            "The engine loads a critic with flash attention only, and flash-attn is not installed: "
            "./init.sh doctor says what its build needs. Recipes without a critic (grpo) run without it.",
        )
    else:
        findings.warn(
            "no_flash_attention",
            "recipe",
            "flash-attn is not installed: attention is PyTorch's own (SDPA) and sequences are padded, not "
            "packed, which is slower. ./init.sh doctor says what its build needs.",
        )
