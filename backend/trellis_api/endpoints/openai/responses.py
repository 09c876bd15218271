"""Bodies of ``POST /v1/responses``: texts and calls of functions. Other fields are refused by name.

Responses are not stored: ``previous_response_id``, ``background`` and ``conversation`` are no fields, and
``store`` may only be false. Tools that run on a server (web search, MCP) are not supported.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints.openai.messages import MAX_TOOLS, Name, Strict
from trellis_api.endpoints.openai.requests import MAX_MESSAGES, JsonFormat, Schema, TextFormat


class InputText(Strict):
    """A part of a turn; ``output_text`` is what an earlier answer said."""

    type: Literal["input_text", "output_text"]
    text: str
    annotations: Any = Field(default=None, exclude=True)
    logprobs: Any = Field(default=None, exclude=True)


class InputTurn(Strict):
    """A turn of the conversation. What clients send back of an answer is taken and left out."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputText]
    id: str | None = Field(default=None, exclude=True)
    status: str | None = Field(default=None, exclude=True)
    phase: str | None = Field(default=None, exclude=True)

    def as_item(self) -> dict[str, str]:
        """Return the turn as text only, which every chat template takes."""
        return {"type": "message", "role": self.role, "content": _join(self.content)}


class FunctionCall(Strict):
    """A call that the model made in an earlier response."""

    type: Literal["function_call"]
    call_id: str = Field(min_length=1, max_length=256)
    name: Name
    arguments: str
    id: str | None = Field(default=None, exclude=True)
    status: str | None = Field(default=None, exclude=True)
    namespace: None = Field(default=None, exclude=True)
    caller: Any = Field(default=None, exclude=True)

    def as_item(self) -> dict[str, str]:
        """Return the call as the engine reads it."""
        return self.model_dump()


class FunctionOutput(Strict):
    """What the client's function returned for a call."""

    type: Literal["function_call_output"]
    call_id: str = Field(min_length=1, max_length=256)
    output: str | list[InputText]
    id: str | None = Field(default=None, exclude=True)
    status: str | None = Field(default=None, exclude=True)

    def as_item(self) -> dict[str, str]:
        """Return the output as text only."""
        return {"type": self.type, "call_id": self.call_id, "output": _join(self.output)}


class ReasoningItem(Strict):
    """The model's reasoning in an earlier response: accepted, and not sent to the model again."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: Any = None
    content: Any = None
    encrypted_content: None = None
    status: str | None = None

    def as_item(self) -> None:
        """Return None: reasoning isn't passed to the engine."""


class FunctionTool(Strict):
    """A function that the model may call."""

    type: Literal["function"]
    name: Name
    description: str | None = Field(default=None, max_length=8192)
    parameters: Schema | None = None
    strict: bool | None = None


class NamedFunctionTool(Strict):
    """The function that must be called."""

    type: Literal["function"]
    name: Name


class ResponseSchema(Strict):
    """An answer of a given form."""

    type: Literal["json_schema"]
    name: Name
    description: str | None = Field(default=None, max_length=8192)
    schema_: Schema = Field(alias="schema")
    strict: bool | None = None


class TextOptions(Strict):
    """How the text is to be."""

    format: Annotated[TextFormat | JsonFormat | ResponseSchema, Field(discriminator="type")] | None = None


def _name_type(item: Any) -> str | None:
    """Return an item's type; clients may omit that of a message."""
    if isinstance(item, dict):
        return str(item.get("type", "message"))
    return getattr(item, "type", None)


InputItem = Annotated[
    Annotated[InputTurn, Tag("message")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionOutput, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_name_type),
]


class ResponseRequest(Strict):
    """``POST /v1/responses``."""

    model: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=MAX_MESSAGES)]
    instructions: str | None = None
    stream: bool = False
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    text: TextOptions | None = None
    tools: list[FunctionTool] | None = Field(default=None, max_length=MAX_TOOLS)
    tool_choice: Literal["none", "auto", "required"] | NamedFunctionTool | None = None
    parallel_tool_calls: bool | None = None
    #: Nothing is kept; only false says what is done.
    store: Literal[False] | None = None
    # Meant for OpenAI's own service: taken, and without effect.
    user: str | None = Field(default=None, exclude=True)
    metadata: dict[str, str] | None = Field(default=None, exclude=True)
    service_tier: str | None = Field(default=None, exclude=True)
    safety_identifier: str | None = Field(default=None, exclude=True)
    prompt_cache_key: str | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        known = {tool.name for tool in self.tools or []}
        chosen = self.tool_choice
        if isinstance(chosen, NamedFunctionTool) and chosen.name not in known:
            raise ValueError(f"'tool_choice' names '{chosen.name}', which is not among 'tools'")
        if chosen == "required" and not known:
            raise ValueError("'tool_choice' is 'required', but 'tools' is empty")
        if not isinstance(self.input, str):
            made = {item.call_id for item in self.input if isinstance(item, FunctionCall)}
            for item in self.input:
                if isinstance(item, FunctionOutput) and item.call_id not in made:
                    raise ValueError(f"'input' has the output of call '{item.call_id}', but not the call")
        return self

    def limit(self) -> int | None:
        """Return the requested maximum of tokens in the response."""
        return self.max_output_tokens

    @property
    def shows_usage(self) -> bool:
        """The tokens that it took stand in the answer itself."""
        return True

    def for_engine(self, *, model: str) -> dict[str, Any]:
        """Build the request body for the engine."""
        body = self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
        if not isinstance(self.input, str):
            body["input"] = [made for item in self.input if (made := item.as_item()) is not None]
        return {**body, "model": model, "store": False}


def _join(content: str | list[InputText]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)
