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

    verl refuses such a length once the model is loaded: it takes ``max_position_embeddings`` for the longest,
    whatever scaling of RoPE the model has (``vLLMHttpServer._validate_configs``). Trainers run, but at
    positions that the model was never trained on, or that it has no embeddings for.
    """
    shape = request.architecture
    if shape is None or shape.context_length is None:
        return
    context = shape.context_length
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
    if length > context * shape.rope_factor:
        findings.warn(
            "longer_than_context",
            "params.max_length",
            f"Rows can have {length} tokens; the model's context has {context}. Longer rows train it on "
            "positions that it doesn't know.",
            str(context),
        )
