"""What a person's workflow is written against: the model that it calls, and what it may return.

Only the standard library: this file lies in the sandbox beside the workflow, as the module ``trellis``.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Message = dict[str, Any]
#: What a call may say beside messages and tools. How tokens are drawn is the configuration's business:
#: the policy learns from the distribution that it drew them from.
CALL_OPTIONS = ("max_tokens", "max_completion_tokens", "stop", "tool_choice", "model", "n", "stream")


@dataclass
class WorkflowOutput:
    """What a workflow may return instead of a number; without a reward, a judge gives it."""

    reward: float | None = None
    #: Handed to the judge.
    response: Any = None
    #: Reported beside the reward.
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class JudgeOutput:
    """What ``async judge(task, response)`` returns."""

    reward: float
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolRequest:
    """A tool that the model asks for."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class ChatReply:
    """What the model wrote."""

    #: Without the calls.
    text: str
    #: As it was sampled.
    raw: str
    tool_calls: list[ToolRequest]
    #: ``stop``, ``tool_calls`` or ``length``.
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def message(self) -> Message:
        """To append to the messages of the next call."""
        if not self.tool_calls:
            return {"role": "assistant", "content": self.raw}
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in self.tool_calls
        ]
        return {"role": "assistant", "content": self.text, "tool_calls": calls}


class ModelError(RuntimeError):
    """The model did not answer a call."""


class ContextExceeded(ModelError):
    """The messages, or what was said so far, leave no room for another reply."""


class TunableChatModel(ABC):
    """The policy under training; every call is recorded, and what it sampled is learned from."""

    @property
    def client(self) -> Any:
        """The same model under the names of OpenAI's client: ``client.chat.completions.create``."""
        return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=self._create)))

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> ChatReply:
        """Let the model reply. ``ValueError`` for options that it cannot follow."""
        check_options(options)
        reply = await self._ask(plain_messages(messages), [dict(tool) for tool in tools or ()], options)
        return read_reply(reply)

    @abstractmethod
    async def _ask(self, messages: list[Message], tools: list[Message], options: Message) -> Message:
        """The reply as plain data, for ``read_reply``."""

    async def _create(
        self, *, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> Any:
        reply = await self(messages, tools, **options)
        return _as_completion(reply, options.get("model") or "policy")


def check_options(options: Mapping[str, Any]) -> None:
    """``ValueError`` for what a call cannot ask for."""
    if options.get("stream"):
        raise ValueError("stream=True is not supported: a reply is recorded as a whole")
    if options.get("n", 1) not in (1, None):
        raise ValueError("n > 1 is not supported: call the model once for each reply")
    if options.get("tool_choice") not in (None, "auto", "none"):
        raise ValueError("tool_choice is 'auto' or 'none'")
    unknown = sorted(set(options) - set(CALL_OPTIONS))
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: no option of a call; the configuration says how replies are sampled"
        )


def plain_messages(messages: Sequence[Any]) -> list[Message]:
    """Messages as dictionaries; those of OpenAI's client (``model_dump``) are taken apart."""
    if not messages:
        raise ValueError("messages must not be empty")
    plain = []
    for message in messages:
        found = message if isinstance(message, Mapping) else getattr(message, "model_dump", dict)()
        if not isinstance(found, Mapping) or not isinstance(found.get("role"), str):
            raise ValueError("each message is a dictionary with a role and content")
        plain.append(dict(found))
    return plain


def read_reply(reply: Mapping[str, Any]) -> ChatReply:
    """A reply of plain data."""
    calls = [ToolRequest(**call) for call in reply["tool_calls"]]
    return ChatReply(**{**reply, "tool_calls": calls})


class _Dumpable(SimpleNamespace):
    def model_dump(self, **_: Any) -> dict[str, Any]:
        """As dictionaries, like OpenAI's own."""
        return {name: _dump(value) for name, value in vars(self).items() if value is not None}


def _dump(value: Any) -> Any:
    if isinstance(value, _Dumpable):
        return value.model_dump()
    return [_dump(item) for item in value] if isinstance(value, list) else value


def _as_completion(reply: ChatReply, model: str) -> Any:
    """The reply in the form of OpenAI's ``ChatCompletion``."""
    said = reply.message
    calls = [
        _Dumpable(id=call["id"], type="function", function=_Dumpable(**call["function"]))
        for call in said.get("tool_calls", ())
    ]
    message = _Dumpable(role="assistant", content=said["content"], tool_calls=calls or None)
    total = reply.prompt_tokens + reply.completion_tokens
    usage = _Dumpable(
        prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens, total_tokens=total
    )
    choice = _Dumpable(index=0, message=message, finish_reason=reply.finish_reason)
    return _Dumpable(object="chat.completion", model=model, choices=[choice], usage=usage)
