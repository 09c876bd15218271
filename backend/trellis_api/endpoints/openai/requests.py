"""Bodies of requests to /v1: what is passed on to an engine, and its bounds. The rest is refused by name.

Nothing here names a path, an address to fetch, a template or a plug-in: an engine's options of that kind
(``chat_template``, ``mm_processor_kwargs``, ``documents``, ``vllm_xargs`` ...) are not among the fields.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints.openai.grammar import check_schema
from trellis_api.endpoints.openai.messages import (
    MAX_TOOLS,
    Message,
    Name,
    NamedTool,
    Strict,
    Tool,
    check_continuation,
)

MAX_MESSAGES = 4096
MAX_CHOICES = 16
MAX_LOGPROBS = 20
MAX_PROMPTS = 64
_MAX_INT = 2**63 - 1

Schema = Annotated[dict[str, Any], AfterValidator(check_schema)]
StopText = Annotated[str, Field(min_length=1, max_length=256)]
StopTexts = Annotated[list[StopText], Field(max_length=16)]
TokenId = Annotated[int, Field(ge=0, le=2**31 - 1)]
Bias = Annotated[float, Field(ge=-100, le=100)]


class StreamOptions(Strict):
    """Streaming options."""

    include_usage: bool = False


class TextFormat(Strict):
    """Plain text output."""

    type: Literal["text"]


class JsonFormat(Strict):
    """Output is any JSON object."""

    type: Literal["json_object"]


class JsonSchema(Strict):
    """A JSON schema for the output."""

    name: Name
    description: str | None = Field(default=None, max_length=8192)
    schema_: Schema = Field(alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Strict):
    """Output matches a JSON schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


ResponseFormat = Annotated[TextFormat | JsonFormat | JsonSchemaFormat, Field(discriminator="type")]


class ThinkingOptions(Strict):
    """Chat template options: whether the model thinks, if supported."""

    enable_thinking: bool | None = None
    thinking: bool | None = None


class Generation(Strict):
    """Fields shared by chat completions and completions."""

    model: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    n: int | None = Field(default=None, ge=1, le=MAX_CHOICES)
    seed: int | None = Field(default=None, ge=-(2**63), le=_MAX_INT)
    stop: StopText | StopTexts | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    logit_bias: dict[str, Bias] | None = Field(default=None, max_length=300)
    response_format: ResponseFormat | None = None
    # vLLM's own, which other clients know too.
    top_k: int | None = Field(default=None, ge=-1, le=2**31 - 1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    repetition_penalty: float | None = Field(default=None, gt=0, le=10)
    min_tokens: int | None = Field(default=None, ge=0)
    ignore_eos: bool | None = None
    stop_token_ids: list[TokenId] | None = Field(default=None, max_length=64)
    skip_special_tokens: bool | None = None
    include_stop_str_in_output: bool | None = None
    return_token_ids: bool | None = None
    # Meant for OpenAI's own service: taken, and without effect.
    user: str | None = Field(default=None, exclude=True)
    metadata: dict[str, str] | None = Field(default=None, exclude=True)
    store: bool | None = Field(default=None, exclude=True)
    service_tier: str | None = Field(default=None, exclude=True)
    safety_identifier: str | None = Field(default=None, exclude=True)
    prompt_cache_key: str | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise ValueError("'stream_options' requires 'stream'")
        return self

    def limit(self) -> int | None:
        """Return the requested maximum of tokens in one response."""
        return self.max_tokens

    @property
    def shows_usage(self) -> bool:
        """Whether a stream is to end with the tokens that it took."""
        return self.stream_options is not None and self.stream_options.include_usage

    def for_engine(self, *, model: str) -> dict[str, Any]:
        """Build the request body for the engine; a stream always reports its token usage."""
        body = self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
        body["model"] = model
        if self.stream:
            body["stream_options"] = {"include_usage": True}
        return body


class ChatRequest(Generation):
    """``POST /v1/chat/completions``."""

    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MAX_LOGPROBS)
    tools: list[Tool] | None = Field(default=None, max_length=MAX_TOOLS)
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    chat_template_kwargs: ThinkingOptions | None = None
    # vLLM's own: the response goes on from the last message, which is the beginning of it.
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None

    @model_validator(mode="after")
    def _check_tools(self) -> Self:
        for tool in self.tools or []:
            check_schema(tool.function.parameters or {})
        if self.top_logprobs is not None and not self.logprobs:
            raise ValueError("'top_logprobs' requires 'logprobs'")
        if self.continue_final_message:
            check_continuation(self.messages, add_generation_prompt=self.add_generation_prompt)
        return self

    def for_engine(self, *, model: str) -> dict[str, Any]:
        """Build the engine's request body, which opens no new turn if the last message is to be continued."""
        body = super().for_engine(model=model)
        if self.continue_final_message:
            body["add_generation_prompt"] = False
        return body

    def limit(self) -> int | None:
        """Return the requested maximum of tokens in one response."""
        return self.max_completion_tokens or self.max_tokens


class CompletionRequest(Generation):
    """``POST /v1/completions``."""

    prompt: str | list[str] | list[TokenId] | list[list[TokenId]]
    logprobs: int | None = Field(default=None, ge=0, le=MAX_LOGPROBS)
    echo: bool | None = None

    @model_validator(mode="after")
    def _check_prompts(self) -> Self:
        if isinstance(self.prompt, list):
            if not self.prompt:
                raise ValueError("'prompt' is empty")
            if not isinstance(self.prompt[0], int) and len(self.prompt) > MAX_PROMPTS:
                raise ValueError(f"a request may contain at most {MAX_PROMPTS} prompts")
        return self
