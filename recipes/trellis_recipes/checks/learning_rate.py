"""Warns where a learning rate was chosen for another way of training: all weights, or an adapter."""

from trellis_contracts.recipe import Preset, Recipe

from trellis_recipes.findings import Findings
from trellis_recipes.recipe_parameters import Value, resolve_parameters
from trellis_recipes.request import ComposeRequest

#: The best rate of LoRA is about ten times that of full fine-tuning
#: (https://thinkingmachines.ai/blog/lora/, "LoRA Without Regret").
LORA_FACTOR = 10


def check_learning_rate(
    findings: Findings,
    recipe: Recipe,
    preset: Preset | None,
    parameters: dict[str, Value],
    request: ComposeRequest,
) -> None:
    """Warn where a rank was given or taken away, and the preset's rate, made for the other way, stayed."""
    rate = parameters.get("learning_rate")
    if "lora_rank" not in request.params or "learning_rate" in request.params or not isinstance(rate, float):
        return
    inherited, _ = resolve_parameters(recipe, preset, {})
    if parameters["lora_rank"] and not inherited["lora_rank"]:
        findings.warn(
            "learning_rate_of_full_training",
            "params.learning_rate",
            f"A learning rate of {rate:g} is meant for training all weights; an adapter usually learns best "
            f"at about {LORA_FACTOR} times that.",
            f"{rate * LORA_FACTOR:g}",
        )
    elif inherited["lora_rank"] and not parameters["lora_rank"]:
        findings.warn(
            "learning_rate_of_adapter",
            "params.learning_rate",
            f"A learning rate of {rate:g} is meant for an adapter; all weights together are usually trained "
            f"at about a {LORA_FACTOR}th of that.",
            f"{rate / LORA_FACTOR:g}",
        )
