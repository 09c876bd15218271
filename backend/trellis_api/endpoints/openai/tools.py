"""Refuses tools that a model would not see: an engine answers such a request as if there were none."""

from trellis_api.endpoints.errors import ToolsUnsupported
from trellis_api.endpoints.openai.embeddings import EmbeddingRequest
from trellis_api.endpoints.openai.engines import Engine
from trellis_api.endpoints.openai.rendering import RenderRequest
from trellis_api.endpoints.openai.requests import ChatRequest, Generation
from trellis_api.endpoints.openai.responses import ResponseRequest

_WHY = {
    "not_in_template": (
        "The chat template of '{name}' doesn't include tools, so the model would never see them."
    ),
    "unknown_call_format": (
        "The chat template of '{name}' writes tool calls in a format that can't be parsed "
        "(supported: Hermes, Qwen3-Coder, GLM, Mistral, Llama 3)."
    ),
}
_INSTEAD = (
    "Use a model whose chat template supports tools, or describe the tools in a system message and parse the "
    "answer yourself. With tool_choice 'none' the request is answered without tools."
)


def require_tools(
    engine: Engine, body: Generation | ResponseRequest | EmbeddingRequest | RenderRequest
) -> None:
    """Raise ``ToolsUnsupported`` if a request has callable tools and the model can't call any."""
    if engine.tool_problem is None or not isinstance(body, ChatRequest | ResponseRequest | RenderRequest):
        return
    choice = None if isinstance(body, RenderRequest) else body.tool_choice
    if not body.tools or choice == "none":
        return
    why = _WHY[engine.tool_problem].format(name=body.model)
    is_forced = choice is not None and choice != "auto"
    raise ToolsUnsupported(f"{why} {_INSTEAD}", {"param": "tool_choice" if is_forced else "tools"})
