"""Checks the longest sequence of a run against the longest one that the model can read."""

from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.findings import Findings
from trellis_recipes.memory.settings import positive
from trellis_recipes.request import ComposeRequest


def check_context(
    findings: Findings, engine: Engine, config: dict[str, Any], request: ComposeRequest
) -> None:
    """Refuse rollouts longer than the model's context; warn of training rows that are longer.

    The rollout engine refuses such a length once the model is loaded. Trainers run, but at positions that the
    model was never trained on, or that it has no embeddings for.
    """
    context = request.architecture.context_length if request.architecture else None
    if context is None:
        return
    if engine is Engine.VERL_PPO:
        longest = positive(config["actor_rollout_ref"]["rollout"]["max_model_len"], 0)
        if longest > context:
            data = config["data"]
            findings.error(
                "longer_than_context",
                "params.max_response_length",
                f"Prompt plus response can have {longest} tokens; the model's context has {context}.",
                str(context - data["max_prompt_length"]) if data["max_prompt_length"] < context else None,
            )
        return
    length = positive(
        config["data"].get("max_length") if engine is Engine.VERL_SFT else config.get("max_length"), 0
    )
    if length > context:
        findings.warn(
            "longer_than_context",
            "params.max_length",
            f"Rows can have {length} tokens; the model's context has {context}. Longer rows train it on "
            "positions that it doesn't know.",
            str(context),
        )
