"""The conversation in a chat request: texts and calls of tools, and nothing that an engine would fetch."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_TOOLS = 128
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]


class Strict(BaseModel):
    """Fields that are not named are refused by name."""

    model_config = ConfigDict(extra="forbid")


class TextPart(Strict):
    """A part of a message. Pictures, sound and files are not read."""

    type: Literal["text"]
    text: str


class CalledFunction(Strict):
    """Which function, with which arguments."""

    name: Name
    arguments: str


class ChatToolCall(Strict):
    """A call that the model made."""

    id: str = Field(max_length=256)
    type: Literal["function"] = "function"
    function: CalledFunction
    #: Clients send back what a stream gave them.
    index: int | None = None


class Message(Strict):
    """One turn. What clients send back of an answer (``refusal`` ...) is taken and left out."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = Field(default=None, max_length=64)
    tool_calls: list[ChatToolCall] | None = Field(default=None, max_length=MAX_TOOLS)
    tool_call_id: str | None = Field(default=None, max_length=256)
    refusal: Any = Field(default=None, exclude=True)
    annotations: Any = Field(default=None, exclude=True)
    audio: None = Field(default=None, exclude=True)
    function_call: None = Field(default=None, exclude=True)
    reasoning: Any = Field(default=None, exclude=True)
    reasoning_content: Any = Field(default=None, exclude=True)


class Function(Strict):
    """A function that the model may call."""

    name: Name
    description: str | None = Field(default=None, max_length=8192)
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict):
    """A tool that the model may call."""

    type: Literal["function"]
    function: Function


class NamedFunction(Strict):
    """A function by its name."""

    name: Name


class NamedTool(Strict):
    """The tool that must be called."""

    type: Literal["function"]
    function: NamedFunction


def check_continuation(messages: Sequence[Message], *, add_generation_prompt: bool | None) -> None:
    """Raise where the last message is no text of the assistant's that could go on."""
    last = messages[-1]
    text = last.content if isinstance(last.content, str) else "".join(p.text for p in last.content or [])
    if last.role != "assistant" or last.tool_calls or not text:
        raise ValueError(
            "'continue_final_message' requires the last message to have the role 'assistant' and a text, "
            "and no tool calls"
        )
    if add_generation_prompt:
        raise ValueError("'continue_final_message' and 'add_generation_prompt' exclude each other")
