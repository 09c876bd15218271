"""Checks what an agent's episodes need: somewhere to act, and room for their turns."""

from typing import Any

from trellis_contracts.recipe import Recipe

from trellis_recipes.agents import RESOURCES
from trellis_recipes.findings import Findings
from trellis_recipes.recipe_parameters import Value

#: A short call and its answer; with less, the last turns could never be played.
TOKENS_PER_TURN = 32
#: A search with its rows; with less, most episodes end for want of room.
USUAL_TOKENS_PER_TURN = 128
#: Resources that an agent can do without.
_OPTIONAL = frozenset({("tune", "environment")})


def check_agent(
    findings: Findings, recipe: Recipe, config: dict[str, Any], parameters: dict[str, Value]
) -> None:
    """Check that the needed environment or workflow is set and that the turns fit in the longest response."""
    if recipe.agent is None:
        return
    for parameter in recipe.parameters:
        is_needed = parameter.type in RESOURCES and (recipe.agent, parameter.type) not in _OPTIONAL
        if is_needed and not parameters.get(parameter.name):
            article = "an" if parameter.type == "environment" else "a"
            message = f"'{recipe.id}' needs {article} {parameter.type}."
            findings.error(f"{parameter.type}_missing", f"params.{parameter.name}", message)
    turns = parameters.get("max_turns")
    if isinstance(turns, int) and parameters.get("mode") != "simple":
        _check_room(findings, turns, config["data"]["max_response_length"])


def _check_room(findings: Findings, turns: int, tokens: int) -> None:
    field, share = "params.max_response_length", tokens // turns
    if share < TOKENS_PER_TURN:
        findings.error(
            "turns_do_not_fit",
            field,
            f"{turns} turns don't fit in an episode of {tokens} tokens: a turn and its tool "
            f"output take at least {TOKENS_PER_TURN}.",
            str(turns * USUAL_TOKENS_PER_TURN),
        )
    elif share < USUAL_TOKENS_PER_TURN:
        findings.warn(
            "turns_are_short",
            field,
            f"{turns} turns in {tokens} tokens leave {share} per turn and tool output; many "
            "episodes will run out of context.",
            str(turns * USUAL_TOKENS_PER_TURN),
        )
