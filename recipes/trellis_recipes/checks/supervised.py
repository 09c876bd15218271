"""Checks of verl's supervised trainer."""

from typing import Any

from trellis_recipes.catalogue import get_recipe
from trellis_recipes.findings import Findings, largest_divisor, warn_of_adapter
from trellis_recipes.request import ComposeRequest


def check_supervised(findings: Findings, config: dict[str, Any], request: ComposeRequest) -> None:
    """Batches, lengths and adapter."""
    data, rank = config["data"], config["model"]["lora_rank"]
    knob = get_recipe(request.recipe).knob("batch_size")
    examples = knob.unit if knob and knob.unit else "examples"
    if data["train_batch_size"] % request.gpus:
        findings.error(
            "batch_not_divisible",
            "params.batch_size",
            f"{data['train_batch_size']} {examples} cannot be split evenly over {request.gpus} GPUs.",
        )
    elif not data["use_dynamic_bsz"]:
        per_gpu, micro = data["train_batch_size"] // request.gpus, data["micro_batch_size_per_gpu"]
        if micro < 1 or per_gpu % micro:
            findings.error(
                "micro_batch_not_divisor",
                "params.micro_batch_size",
                f"The {per_gpu} {examples} of a step on one GPU cannot be split into passes of {micro}.",
                str(largest_divisor(per_gpu, micro)),
            )
    if data["use_dynamic_bsz"] and data["max_token_len_per_gpu"] < data["max_length"]:
        findings.error(
            "tokens_per_pass_too_small",
            "params.max_tokens_per_gpu",
            f"One of the {examples} may have {data['max_length']} tokens, more than the "
            f"{data['max_token_len_per_gpu']} of one pass.",
            str(data["max_length"]),
        )
    if rank:
        warn_of_adapter(findings)
