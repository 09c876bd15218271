"""Checks settings against each other: what the engine would refuse minutes into a run, and what rarely works.

One module for each part: rows, batches, the algorithm, its rewards, the supervised trainer.
"""

from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.catalogue import get_recipe
from trellis_recipes.checks.agent import check_agent
from trellis_recipes.checks.algorithm import check_algorithm
from trellis_recipes.checks.attention import check_attention
from trellis_recipes.checks.batches import check_batches, check_lengths
from trellis_recipes.checks.context import check_context
from trellis_recipes.checks.model import check_rl_model
from trellis_recipes.checks.parallel import check_parallel
from trellis_recipes.checks.preference import check_base, check_preference
from trellis_recipes.checks.retrieval import check_retrieval
from trellis_recipes.checks.reward import check_reward
from trellis_recipes.checks.row_counts import check_rows
from trellis_recipes.checks.supervised import check_supervised
from trellis_recipes.findings import Findings
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import ComposeRequest
from trellis_recipes.trl_mapping import rows_per_step

__all__ = ["Findings", "check_config"]


def check_config(
    engine: Engine,
    config: dict[str, Any],
    parameters: dict[str, Value],
    request: ComposeRequest,
    *,
    holds_out: bool,
) -> Findings:
    """Check a resolved configuration; ``holds_out``: validation rows are taken from the training rows."""
    findings = Findings()
    held_out = parameters.get("validation_rows") if holds_out else 0
    if engine is Engine.TRL:
        batch = rows_per_step(request, parameters)
    else:
        batch = config["batch_size"] if engine is Engine.RETRIEVAL else config["data"]["train_batch_size"]
    if isinstance(batch, int):
        check_rows(findings, request, batch=batch, held_out=held_out if isinstance(held_out, int) else 0)
    check_base(findings, engine, request)
    check_attention(findings, engine, config, request)
    check_parallel(findings, engine, config, request)
    check_context(findings, engine, config, request)
    if engine is Engine.VERL_PPO:
        check_batches(findings, config, request.gpus)
        check_lengths(findings, config)
        check_algorithm(findings, config, request)
        check_reward(findings, config, parameters, request)
        check_rl_model(findings, config, request.gpus)
        check_agent(findings, get_recipe(request.recipe), config, parameters)
    elif engine is Engine.VERL_SFT:
        check_supervised(findings, config, request)
    elif engine is Engine.TRL:
        check_preference(findings, config, parameters, request)
    elif engine is Engine.RETRIEVAL:
        check_retrieval(findings, request)
    return findings
