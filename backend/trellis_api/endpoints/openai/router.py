"""``/v1``: OpenAI's API, served by the platform's models and checkpoints."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response
from trellis_contracts.endpoints import OPENAI_PREFIX

from trellis_api.core.dependencies import ReadSession, SettingsDep
from trellis_api.core.errors import InvalidRequest
from trellis_api.core.openai_errors import OPENAI_RESPONSES
from trellis_api.core.texts import QueryText
from trellis_api.endpoints.openai.callers import require_model
from trellis_api.endpoints.openai.embeddings import EmbeddingRequest
from trellis_api.endpoints.openai.engines import Engines
from trellis_api.endpoints.openai.forwarding import ClientGone, EventStream, forward, refuse_gone
from trellis_api.endpoints.openai.names import list_cards, read_card
from trellis_api.endpoints.openai.rendering import RenderRequest, render
from trellis_api.endpoints.openai.requests import ChatRequest, CompletionRequest, Generation
from trellis_api.endpoints.openai.responses import ResponseRequest
from trellis_api.endpoints.openai.schemas import ModelCard, ModelList, RenderedPrompt
from trellis_api.endpoints.openai.tools import require_tools
from trellis_api.endpoints.openai.usage import CountedRoute, RequestCount

router = APIRouter(
    prefix=OPENAI_PREFIX, tags=["openai"], responses=OPENAI_RESPONSES, route_class=CountedRoute
)
#: Models in one answer: official clients read only one.
_MAX_LISTED = 1000
#: What a client that has left would get: a status that proxies know.
_CLIENT_CLOSED = 499
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer, or its events where `stream` is true.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"description": "A vector for each input.", "content": {"application/json": {}}}
}


async def _engines(request: Request) -> Engines:
    engines: Engines = request.app.state.engines
    return engines


EnginesDep = Annotated[Engines, Depends(_engines)]


@router.get("/models", summary="List models")
def list_openai_models(
    session: ReadSession,
    limit: Annotated[int, Query(ge=1, le=_MAX_LISTED, description="Models in one answer.")] = _MAX_LISTED,
    after: Annotated[
        QueryText | None, Query(description="Only models after this one: `last_id` of the answer before.")
    ] = None,
) -> ModelList:
    """List models, newest first; with the last of them, aliases and served checkpoints.

    Requests can use any saved checkpoint as job_...:STEP.
    """
    return list_cards(session, after=after, limit=limit)


@router.get("/models/{name:path}", summary="Get a model")
def read_openai_model(name: str, session: ReadSession) -> ModelCard:
    """Get a model by name or ID, or a checkpoint as job_...:STEP."""
    return read_card(session, name)


@router.post(
    "/chat/completions", summary="Create chat completion", response_class=Response, responses=_STREAM
)
async def complete_chat(
    body: ChatRequest, request: Request, engines: EnginesDep, settings: SettingsDep
) -> Response:
    """Complete a chat as OpenAI's API does.

    Loads the model if needed; 503 with Retry-After if it takes too long.
    """
    return await _answer(request, engines, body, limit=settings.endpoint_max_tokens)


@router.post("/completions", summary="Create a completion", response_class=Response, responses=_STREAM)
async def complete_text(
    body: CompletionRequest, request: Request, engines: EnginesDep, settings: SettingsDep
) -> Response:
    """Complete a text as OpenAI's API does."""
    return await _answer(request, engines, body, limit=settings.endpoint_max_tokens)


@router.post("/responses", summary="Create a response", response_class=Response, responses=_STREAM)
async def create_response(
    body: ResponseRequest, request: Request, engines: EnginesDep, settings: SettingsDep
) -> Response:
    """Create a response as OpenAI's API does, for text and function tools; nothing is stored."""
    return await _answer(request, engines, body, limit=settings.endpoint_max_tokens)


@router.post("/embeddings", summary="Create embeddings", response_class=Response, responses=_ANSWER)
async def create_embeddings(
    body: EmbeddingRequest, request: Request, engines: EnginesDep, settings: SettingsDep
) -> Response:
    """Create embeddings as OpenAI's API does. Requires an encoder; 400 for generative models."""
    return await _answer(request, engines, body, limit=settings.endpoint_max_tokens)


@router.post("/tokenize", summary="Render and tokenize a chat", response_model=RenderedPrompt)
async def render_prompt(
    body: RenderRequest, request: Request, engines: EnginesDep
) -> RenderedPrompt | Response:
    """Get the prompt that a chat gives the model, or the tokens of a text (`prompt`). Loads the model."""
    with RequestCount(request.scope["route"].path) as count:
        require_model(request, body.model)
        engines.enter()
        try:
            engine = await engines.find(body.model, lambda: refuse_gone(request))
            count.endpoint_id = engine.endpoint_id
            require_tools(engine, body)
            return await render(request, engines, engine, body)
        except ClientGone:
            count.outcome = "broken_off"
            return Response(status_code=_CLIENT_CLOSED)
        finally:
            engines.leave()


async def _answer(
    request: Request,
    engines: Engines,
    body: Generation | ResponseRequest | EmbeddingRequest,
    *,
    limit: int,
) -> Response:
    with RequestCount(request.scope["route"].path) as count:
        require_model(request, body.model)
        if (body.limit() or 0) > limit:
            param = "max_output_tokens" if isinstance(body, ResponseRequest) else "max_tokens"
            raise InvalidRequest(
                f"Responses are limited to {limit} tokens (TRELLIS_ENDPOINT_MAX_TOKENS).", {"param": param}
            )
        engines.enter()
        return await _ask(request, engines, body, count)


async def _ask(
    request: Request,
    engines: Engines,
    body: Generation | ResponseRequest | EmbeddingRequest,
    count: RequestCount,
) -> Response:
    """Return the engine's answer and keep the request counted until the answer ends."""
    path = request.scope["route"].path
    is_handed_on = False
    try:
        is_embedding = isinstance(body, EmbeddingRequest)
        engine = await engines.find(body.model, lambda: refuse_gone(request), is_embedding=is_embedding)
        count.endpoint_id = engine.endpoint_id
        require_tools(engine, body)
        passed_on = body.for_engine(model=engine.served_name)
        if engine.cache_salt is not None:
            passed_on["cache_salt"] = engine.cache_salt
        response = await forward(
            request, engines, engine, path=path, body=passed_on, shows_usage=body.shows_usage
        )
        is_handed_on = isinstance(response, EventStream)  # it goes on until its last event
        if is_handed_on:
            count.outcome = None
        return response
    except ClientGone:
        count.outcome = "broken_off"
        return Response(status_code=_CLIENT_CLOSED)
    finally:
        if not is_handed_on:
            engines.leave()
