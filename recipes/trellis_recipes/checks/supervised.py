"""Checks of verl's supervised trainer."""

from typing import Any

from trellis_recipes.catalogue import get_recipe
from trellis_recipes.checks.row_counts import check_split
from trellis_recipes.findings import Findings, warn_of_adapter
from trellis_recipes.memory.settings import sequence_parallel
from trellis_recipes.request import ComposeRequest


def check_supervised(findings: Findings, config: dict[str, Any], request: ComposeRequest) -> None:
    """Check batches, lengths and adapter."""
    data, rank = config["data"], config["model"]["lora_rank"]
    parameter = get_recipe(request.recipe).parameter("batch_size")
    examples = parameter.unit if parameter and parameter.unit else "examples"
    micro = None if data["use_dynamic_bsz"] else data["micro_batch_size_per_gpu"]
    check_split(findings, batch=data["train_batch_size"], micro=micro, gpus=request.gpus, unit=examples)
    # GPUs that share a sequence share a pass.
    most = data["max_token_len_per_gpu"] * sequence_parallel({}, config["engine"])
    if data["use_dynamic_bsz"] and most < data["max_length"]:
        findings.error(
            "tokens_per_pass_too_small",
            "params.max_tokens_per_gpu",
            f"Some {examples} can have up to {data['max_length']} tokens, more than the "
            f"{most} per micro-batch.",
            str(data["max_length"]),
        )
    if rank:
        warn_of_adapter(findings)
