"""The policy under the names of OpenAI's client, so that agent frameworks can be given it.

Only the standard library: this file lies in the sandbox beside the workflow. Where a framework has loaded
``openai``, answers are of its types.
"""

import asyncio
import importlib
import itertools
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from trellis_contracts.workflows import ChatReply, Message

Ask = Callable[..., Awaitable[ChatReply]]
#: Of a service that is not there: accepted, and without effect.
WITHOUT_EFFECT = frozenset({
    "extra_headers", "extra_query", "metadata", "store", "user", "service_tier", "safety_identifier",
    "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options",
})  # fmt: skip
#: What ``openai`` sends for an argument that was not given.
_NOT_GIVEN = frozenset({"NotGiven", "Omit"})
_numbers = itertools.count(1)


class ChatClient:
    """Asynchronous, as ``openai.AsyncOpenAI`` is; ``ask`` is the model. Nothing goes over a network."""

    base_url, api_key, organization, max_retries = "http://policy.invalid/v1/", "policy", None, 0

    def __init__(self, ask: Ask) -> None:
        self.chat = SimpleNamespace(completions=Completions(ask))

    def with_options(self, **_options: Any) -> "ChatClient":
        """Return the same client: it has no connection that could be set otherwise."""
        return self

    copy = with_options

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""


class SyncChatClient:
    """The same for code that does not await, in a thread of its own: ``asyncio.to_thread``."""

    base_url, api_key, organization, max_retries = "http://policy.invalid/v1/", "policy", None, 0

    def __init__(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> None:
        self.chat = SimpleNamespace(completions=SyncCompletions(Completions(ask), loop))

    def with_options(self, **_options: Any) -> "SyncChatClient":
        """Return the same client: it has no connection that could be set otherwise."""
        return self

    copy = with_options


class Completions:
    """``client.chat.completions``."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    @property
    def with_raw_response(self) -> "RawCompletions":
        """The same with answers that are parsed later, as LangChain asks for them."""
        return RawCompletions(self)

    async def create(
        self, *, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> Any:
        """Let the model reply: a completion, or with ``stream`` its chunks.

        Raises ``ValueError`` for options that it cannot follow, ``TimeoutError`` after ``timeout`` seconds.
        """
        given = {name: value for name, value in options.items() if _is_given(value)}
        offered = tools if _is_given(tools) else None
        if given.pop("extra_body", None):
            raise ValueError("extra_body has no effect here: the configuration says how replies are sampled")
        for name in WITHOUT_EFFECT & set(given):
            del given[name]
        is_streamed, told = bool(given.pop("stream", False)), given.pop("stream_options", None) or {}
        seconds, name = given.pop("timeout", None), str(given.get("model") or "policy")
        asked = self._ask(messages, offered, **given)
        # Of frameworks that bound connecting and reading apart, nothing is bounded: there is no connection.
        reply = await (asyncio.wait_for(asked, seconds) if isinstance(seconds, int | float) else asked)
        completion = describe_completion(reply, name)
        if is_streamed:
            return Chunks(completion, has_usage=bool(told.get("include_usage")))
        return _as_type(completion, "ChatCompletion")


class RawCompletions:
    """``client.chat.completions.with_raw_response``."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    async def create(self, **request: Any) -> "RawAnswer":
        """Let the model reply; ``parse()`` of the answer gives the completion."""
        return RawAnswer(await self._completions.create(**request))


class RawAnswer:
    """An answer that came over no connection."""

    headers: Mapping[str, str] = {}

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def parse(self) -> Any:
        """Give the completion."""
        return self._answer


class SyncCompletions:
    """``client.chat.completions`` of a thread; the session's loop does the work."""

    def __init__(self, completions: Completions, loop: asyncio.AbstractEventLoop) -> None:
        self._completions, self._loop = completions, loop

    @property
    def with_raw_response(self) -> SimpleNamespace:
        """The same with answers that are parsed later."""
        return SimpleNamespace(create=lambda **request: RawAnswer(self.create(**request)))

    def create(self, **request: Any) -> Any:
        """Wait for the reply.

        Raises ``RuntimeError`` in the session's own thread, which would wait for itself.
        """
        try:
            is_inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_inside = False
        if is_inside:
            raise RuntimeError("sync_client is for code in a thread: await asyncio.to_thread(function, ...)")
        if _is_given(request.get("stream")) and request.get("stream"):
            raise ValueError("stream=True is of the asynchronous client")
        return asyncio.run_coroutine_threadsafe(self._completions.create(**request), self._loop).result()


class Chunks:
    """A reply in the form of a stream: its text, its calls, its end."""

    def __init__(self, completion: Message, *, has_usage: bool) -> None:
        self._chunks = [_as_type(each, "ChatCompletionChunk") for each in _cut(completion, has_usage)]

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[Any]:
        for chunk in self._chunks:
            yield chunk

    async def __aenter__(self) -> "Chunks":
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Do nothing: the whole reply is here."""


class Dumpable(SimpleNamespace):
    """An answer where ``openai`` is not loaded: fields by name, and ``model_dump``."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python itself looks for these
        raise AttributeError(f"the reply has no field '{name}' here; there are {', '.join(vars(self))}")

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Convert to dictionaries, like OpenAI's own types."""
        return {name: _dump(value) for name, value in vars(self).items() if value is not None}


def describe_completion(reply: ChatReply, model: str) -> Message:
    """Convert the reply to OpenAI's ``ChatCompletion`` as plain data."""
    said = reply.message
    message = {"role": "assistant", "content": said["content"], "refusal": None}
    message["tool_calls"] = said.get("tool_calls")
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    total = reply.prompt_tokens + reply.completion_tokens
    usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
    return {
        "id": f"chatcmpl-{next(_numbers)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": {**usage, "total_tokens": total},
    }


def _cut(completion: Message, has_usage: bool) -> list[Message]:
    common = {name: completion[name] for name in ("id", "created", "model")}
    common["object"] = "chat.completion.chunk"
    choice = completion["choices"][0]
    message = choice["message"]
    deltas: list[tuple[Message, str | None]] = [({"role": "assistant", "content": message["content"]}, None)]
    if message["tool_calls"]:
        calls = [{"index": place, **call} for place, call in enumerate(message["tool_calls"])]
        deltas.append(({"tool_calls": calls}, None))
    deltas.append(({}, choice["finish_reason"]))
    chunks = [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in deltas
    ]
    return [*chunks, {**common, "choices": [], "usage": completion["usage"]}] if has_usage else chunks


def _is_given(value: object) -> bool:
    return value is not None and type(value).__name__ not in _NOT_GIVEN


def _as_type(found: Message, name: str) -> Any:
    """Convert to ``openai``'s own type if that is loaded: frameworks check it with ``isinstance``."""
    if "openai" in sys.modules:
        types = importlib.import_module("openai.types.chat")
        return getattr(types, name).model_validate(found)
    return _as_fields(found)


def _as_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return Dumpable(**{name: _as_fields(item) for name, item in value.items()})
    return [_as_fields(item) for item in value] if isinstance(value, list) else value


def _dump(value: Any) -> Any:
    if isinstance(value, Dumpable):
        return value.model_dump()
    return [_dump(item) for item in value] if isinstance(value, list) else value
