"""Whether a model can be told of its tools: a training whose prompt shows none would seem to succeed."""

from typing import Any

from trellis_recipes.catalogue import UnknownRecipe, get_recipe

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.jobs.errors import ToolsNotShown
from trellis_api.models.inspection import shows_tools
from trellis_api.models.models import Model

#: Agents that always have tools; a workflow may have some, which its first sessions tell before it trains.
_WITH_TOOLS = frozenset({"linksearch"})
_PARAMETER, _HERMES = "tool_template", "hermes"


def find_tool_problems(
    settings: Settings, model: Model, *, recipe: str, params: dict[str, Any]
) -> list[tuple[DomainError, str]]:
    """Find why the model wouldn't see the tools of the recipe's agent, with the field; empty if it does."""
    try:
        agent = get_recipe(recipe).agent
    except UnknownRecipe:
        return []
    if agent not in _WITH_TOOLS or params.get(_PARAMETER) == _HERMES:
        return []
    folder = settings.data_root / (model.path or "")
    if not folder.is_dir() or shows_tools(folder):  # weights that are not here are told of elsewhere
        return []
    message = (
        f"The chat template of {model.name} doesn't support tools, so the agent "
        f"wouldn't see them. Use a model with tool support, or set {_PARAMETER} to {_HERMES}."
    )
    details = [{"code": ToolsNotShown.code, "field": "model", "message": message}]
    return [(ToolsNotShown(message, details), "model")]
