"""Recipes whose rollouts are episodes of an agent: what their parameters tell the agent's loop."""

from collections.abc import Mapping
from typing import Any, get_args

from trellis_contracts.agents import AgentKind, AgentTask
from trellis_contracts.recipe import Recipe

from trellis_recipes.workflows.source import AUXILIARY

#: The agents that a recipe may name.
AGENTS: tuple[str, ...] = get_args(AgentKind)
#: Parameters that name something of the platform; a loop is told the path of it instead.
RESOURCES = frozenset({"environment", "workflow"})


def make_agent_task(
    recipe: Recipe,
    params: Mapping[str, Any],
    *,
    environment_path: str | None = None,
    workflow_path: str | None = None,
) -> AgentTask | None:
    """Build the agent task for a job of ``recipe`` from all parameter values; None if it has no agent.

    The options are the parameters of group ``agent``.
    """
    if recipe.agent is None:
        return None
    options = {
        parameter.name: params[parameter.name]
        for parameter in recipe.parameters
        if parameter.group == "agent" and parameter.type not in RESOURCES and parameter.name != AUXILIARY
    }
    return AgentTask.model_validate(
        {
            "kind": recipe.agent,
            "environment_path": environment_path,
            "workflow_path": workflow_path,
            "options": options,
        }
    )
