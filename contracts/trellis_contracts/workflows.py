"""What a person's workflow is written against: the model that it calls, and what it may return.

Only the standard library: this file lies in the sandbox beside the workflow, as the module ``trellis``.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
#: What a call may say beside messages and tools. How tokens are drawn is the configuration's business:
#: the policy learns from the distribution that it drew them from.
CALL_OPTIONS = (
    "max_tokens", "max_completion_tokens", "stop", "tool_choice", "parallel_tool_calls", "response_format",
    "model", "n", "stream",
)  # fmt: skip
#: What calls of a model may say beside those that nobody learns from.
SAMPLING_OPTIONS = ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty")
_TOOL_CHOICES = ("auto", "none", "required")


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
    #: What it thought before, where the configuration has a ``reasoning_parser``; no part of ``text``.
    reasoning: str = ""

    @property
    def message(self) -> Message:
        """To append to the messages of the next call."""
        if not self.tool_calls:
            return {"role": "assistant", "content": self.text if self.reasoning else self.raw}
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

    call_options: tuple[str, ...] = CALL_OPTIONS

    @property
    def client(self) -> Any:
        """The same model as ``openai.AsyncOpenAI``: ``client.chat.completions.create``."""
        from trellis_contracts.chat_client import ChatClient

        return ChatClient(self)

    @property
    def sync_client(self) -> Any:
        """The same for code that does not await, to be run with ``asyncio.to_thread``."""
        from trellis_contracts.chat_client import SyncChatClient

        return SyncChatClient(self, asyncio.get_running_loop())

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> ChatReply:
        """Let the model reply. ``ValueError`` for options that it cannot follow."""
        offered = [dict(tool) for tool in tools or ()]
        check_options(options, self.call_options)
        _check_tool_choice(options.get("tool_choice"), offered)
        reply = await self._ask(plain_messages(messages), offered, options)
        return read_reply(reply)

    def tools(self, environment: str | None = None) -> Any:
        """Return an environment's tools as ``ToolSet``; the only environment's if no name is given."""
        from trellis_contracts.workflow_tools import choose_tools

        return choose_tools(self._environments(), environment, self._call_tool)

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        body: str | None = None,
        timeout: float = 30.0,
    ) -> Any:
        """Ask a host that the platform's owner grants, and return what it answered as ``Fetched``.

        ``ModelError`` where the host is not granted or does not answer.
        """
        from trellis_contracts.workflow_tools import Fetched

        request = {"url": url, "method": method, "headers": dict(headers or {}), "json": json, "body": body}
        found = await self._fetch({**request, "timeout": timeout})
        return Fetched(int(found["status"]), dict(found["headers"]), str(found["text"]))

    @abstractmethod
    async def _ask(self, messages: list[Message], tools: list[Message], options: Message) -> Message:
        """Send the messages to the model and return the reply as plain data, for ``read_reply``."""

    def _environments(self) -> Mapping[str, Sequence[Message]]:
        """Return the tools by environment; none outside a session."""
        return {}

    async def _call_tool(self, environment: str, tool: str, arguments: Message) -> Message:
        raise ModelError(f"no session runs, in which {environment} could be asked for {tool}({arguments})")

    async def _fetch(self, request: Message) -> Message:
        raise ModelError(f"no session runs, in which {request['url']} could be asked")


class AuxiliaryModel(TunableChatModel):
    """Another model that a workflow may call: nothing of it is recorded or learned from.

    Calls may say how replies are sampled.
    """

    call_options = (*CALL_OPTIONS, *SAMPLING_OPTIONS)


def check_options(options: Mapping[str, Any], known: Sequence[str] = CALL_OPTIONS) -> None:
    """Raise ``ValueError`` for options that a call does not support."""
    if options.get("stream"):
        raise ValueError("stream=True is of model.client: a reply is recorded as a whole")
    if options.get("n", 1) not in (1, None):
        raise ValueError("n > 1 is not supported: call the model once for each reply")
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: no option of a call; the configuration says how replies are sampled"
        )


def _check_tool_choice(choice: object, tools: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``ValueError`` for an invalid choice, or a tool that is not offered."""
    name = named_tool(choice)
    if name is None:
        if choice is not None and choice not in _TOOL_CHOICES:
            raise ValueError(f"tool_choice is one of {', '.join(_TOOL_CHOICES)}, or names a function")
        if choice == "required" and not tools:
            raise ValueError("tool_choice is 'required', and no tools are offered")
    elif name not in [tool.get("function", tool).get("name") for tool in tools]:
        raise ValueError(f"tool_choice names '{name}', which is not among the tools")


def named_tool(choice: object) -> str | None:
    """Return the function that ``tool_choice`` names, or None."""
    if not isinstance(choice, Mapping):
        return None
    function = choice.get("function")
    name = function.get("name") if isinstance(function, Mapping) else choice.get("name")
    return str(name) if name else None


def plain_messages(messages: Sequence[Any]) -> list[Message]:
    """Convert messages to dictionaries, including those of OpenAI's client (``model_dump``)."""
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
    """Convert a reply from plain data to a ``ChatReply``."""
    calls = [ToolRequest(**call) for call in reply["tool_calls"]]
    return ChatReply(**{**reply, "tool_calls": calls})
