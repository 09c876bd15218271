"""Shared conversations as clients send and see them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from trellis_api.core.texts import NO_NUL

_MAX_PROMPTS = 200
_MAX_STEPS = 64
_MAX_CALLS = 128
Text = Annotated[str, StringConstraints(max_length=200_000, pattern=NO_NUL)]
Short = Annotated[str, StringConstraints(max_length=256, pattern=NO_NUL)]
ModelName = Annotated[str, StringConstraints(max_length=200, pattern=NO_NUL)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PlaygroundSettings(_Strict):
    """What all columns are asked with."""

    system: Text = ""
    temperature: float = Field(ge=0, le=2)
    top_p: float = Field(gt=0, le=1)
    max_tokens: int = Field(ge=1, le=2**31 - 1)
    seed: int | None = Field(default=None, ge=0, le=2**53)
    format: Literal["text", "json", "schema"] = "text"
    response_schema: Text = Field(default="", description="JSON schema of responses, as typed.")
    tools: Text = Field(default="", description="JSON list of tools, as typed.")
    thinking: Literal["default", "on", "off"] = "default"
    stop: Text = Field(
        default="", description="Stop sequences, as typed: one per line, `\\n` for a line break."
    )
    top_k: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Null: all tokens.")
    min_p: float = Field(default=0, ge=0, le=1)
    presence_penalty: float = Field(default=0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0, ge=-2, le=2)


class ContextMessage(_Strict):
    """A turn before the first prompt."""

    role: Literal["system", "user", "assistant"]
    content: Text


class SharedCall(_Strict):
    """A tool call of a response."""

    id: Short
    name: Short
    arguments: Text
    result: Text | None = Field(default=None, description="Null until there is one.")


class SharedAnswer(_Strict):
    """A response of a column."""

    text: Text
    is_edited: bool = False
    calls: Annotated[list[SharedCall], Field(max_length=_MAX_CALLS)] = []


class SharedColumn(_Strict):
    """A model with its responses: for each prompt one, and one more after each round of tool calls."""

    model: ModelName
    turns: Annotated[
        list[Annotated[list[SharedAnswer], Field(max_length=_MAX_STEPS)]], Field(max_length=_MAX_PROMPTS)
    ] = []


class Conversation(_Strict):
    """Everything that the playground needs to show a conversation again."""

    settings: PlaygroundSettings
    context: Annotated[list[ContextMessage], Field(max_length=_MAX_PROMPTS)] = []
    prompts: Annotated[list[Text], Field(min_length=1, max_length=_MAX_PROMPTS)]
    columns: Annotated[list[SharedColumn], Field(min_length=1, max_length=4)]


class SharedConversationLink(BaseModel):
    """A shared conversation without its content."""

    id: str
    title: str = Field(description="Start of the first prompt.")
    created_at: datetime
    expires_at: datetime


class SharedConversationRead(BaseModel):
    """A shared conversation."""

    id: str
    content: Conversation
    created_by: str
    created_at: datetime
    expires_at: datetime
    can_delete: bool = Field(description="Only whoever shared it can delete it.")
