"""The prompt that a model gets for a chat, or a text: tokenized by its engine, control tokens marked.

Chat templates come with models and are programs: they run in the engine's process, as for every chat, and
never in the API's.
"""

from typing import Any, Self

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, model_validator

from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints.errors import EngineError
from trellis_api.endpoints.openai.engines import Engine, Engines
from trellis_api.endpoints.openai.forwarding import ask
from trellis_api.endpoints.openai.grammar import check_schema
from trellis_api.endpoints.openai.messages import MAX_TOOLS, Message, Strict, Tool, check_continuation
from trellis_api.endpoints.openai.requests import MAX_MESSAGES, ThinkingOptions
from trellis_api.endpoints.openai.schemas import PromptPiece, RenderedPrompt


class RenderRequest(Strict):
    """``POST /v1/tokenize``: the fields of a chat that its prompt depends on, or a text."""

    model: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    messages: list[Message] | None = Field(default=None, min_length=1, max_length=MAX_MESSAGES)
    #: A text as it stands in the middle of a prompt: no template, and no tokens around it.
    prompt: str | None = Field(default=None, min_length=1)
    tools: list[Tool] | None = Field(default=None, max_length=MAX_TOOLS)
    chat_template_kwargs: ThinkingOptions | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        for tool in self.tools or []:
            check_schema(tool.function.parameters or {})
        if (self.messages is None) == (self.prompt is None):
            raise ValueError("give either 'messages' or 'prompt'")
        if self.prompt is not None and self.model_fields_set - {"model", "prompt"}:
            raise ValueError("'prompt' is only a text: everything else belongs to 'messages'")
        if self.continue_final_message:
            check_continuation(self.messages or [], add_generation_prompt=self.add_generation_prompt)
        return self

    def for_engine(self, *, model: str) -> dict[str, Any]:
        """Build the request body for the engine."""
        body = self.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        if self.continue_final_message:
            body["add_generation_prompt"] = False
        if self.prompt is not None:
            body["add_special_tokens"] = False
        return {**body, "model": model}


async def render(request: Request, engines: Engines, engine: Engine, body: RenderRequest) -> RenderedPrompt:
    """Ask the engine for the tokens of the prompt, their text, and which tokens its tokenizer has added."""
    name = engine.served_name
    told = await ask(request, engines, engine, path="/tokenize", body=body.for_engine(model=name))
    given = {"model": name, "tokens": told.get("tokens")}
    read = await ask(request, engines, engine, path="/detokenize", body=given)
    tokenizer = await ask(request, engines, engine, path="/tokenizer_info")
    try:
        return await run_in_threadpool(_describe, told, read, tokenizer)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise EngineError("The engine's description of the prompt can't be read.") from error


def _describe(told: dict[str, Any], read: dict[str, Any], tokenizer: dict[str, Any]) -> RenderedPrompt:
    tokens = told["tokens"]
    added = {int(token): str(text) for token, text in tokenizer.get("added_tokens_decoder", {}).items()}
    pieces = cut_at_added(str(read["prompt"]), tokens, added)
    return RenderedPrompt(
        count=len(tokens), max_model_len=told["max_model_len"], tokens=tokens, pieces=pieces
    )


def cut_at_added(text: str, tokens: list[int], added: dict[int, str]) -> list[PromptPiece]:
    """Cut the text into pieces: each added token (``<|im_start|>``) is one, and so is the text between two.

    A message that spells out such a token holds it: that is what the model reads there, too.
    """
    pieces: list[PromptPiece] = []
    begin, unseen = 0, set[int]()
    for token in tokens:
        mark = added.get(token)
        if not mark or token in unseen:
            continue
        at = text.find(mark, begin)
        if at < 0:  # its tokenizer writes it in another way
            unseen.add(token)
            continue
        if at > begin:
            pieces.append(PromptPiece(text=text[begin:at], is_special=False))
        pieces.append(PromptPiece(text=mark, is_special=True))
        begin = at + len(mark)
    if begin < len(text):
        pieces.append(PromptPiece(text=text[begin:], is_special=False))
    return pieces
