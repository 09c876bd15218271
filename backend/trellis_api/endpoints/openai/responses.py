"""Bodies of ``POST /v1/responses``: texts in, a text out. What is not among the fields is refused by name.

Answers are not kept: ``previous_response_id``, ``background`` and ``conversation`` are no fields, and
``store`` may only be false. Tools belong to ``/v1/chat/completions``.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from trellis_api.core.texts import NO_NUL
from trellis_api.endpoints.openai.messages import Name, Strict
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

    def as_message(self) -> dict[str, str]:
        """With its text alone, which every chat template takes."""
        content = self.content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        return {"type": "message", "role": self.role, "content": text}


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


class ResponseRequest(Strict):
    """``POST /v1/responses``."""

    model: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    input: str | Annotated[list[InputTurn], Field(min_length=1, max_length=MAX_MESSAGES)]
    instructions: str | None = None
    stream: bool = False
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    text: TextOptions | None = None
    #: Nothing is kept; only false says what is done.
    store: Literal[False] | None = None
    # Meant for OpenAI's own service: taken, and without effect.
    user: str | None = Field(default=None, exclude=True)
    metadata: dict[str, str] | None = Field(default=None, exclude=True)
    service_tier: str | None = Field(default=None, exclude=True)
    safety_identifier: str | None = Field(default=None, exclude=True)
    prompt_cache_key: str | None = Field(default=None, exclude=True)

    def limit(self) -> int | None:
        """Tokens of the answer, as asked for."""
        return self.max_output_tokens

    @property
    def shows_usage(self) -> bool:
        """The tokens that it took stand in the answer itself."""
        return True

    def for_engine(self, *, model: str) -> dict[str, Any]:
        """The body as an engine gets it."""
        body = self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
        if not isinstance(self.input, str):
            body["input"] = [turn.as_message() for turn in self.input]
        return {**body, "model": model, "store": False}
