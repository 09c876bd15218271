"""The policy as a workflow sees it, on the side of the engine: every call becomes part of a branch.

A call whose messages go on from a branch (its messages are a strict prefix) continues it token by token;
any other call, after an edited history or beside one that still runs, begins a new branch.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from jinja2 import TemplateError
from trellis_contracts.agents import ToolCall
from trellis_contracts.workflows import (
    ContextExceeded,
    Message,
    ModelError,
    TunableChatModel,
    named_tool,
    read_reply,
)

from trellis_train.agents.episode.tool_calls import parse_tool_calls
from trellis_train.agents.episode.tool_template import HERMES, shows_tools
from trellis_train.agents.episode.transcript import PromptTooLong, Transcript
from trellis_train.rollout.seeding import derive_seed

#: Of one session; those that were completed last.
MAX_BRANCHES = 16


@dataclass
class Branch:
    """One conversation, as the model saw it."""

    transcript: Transcript
    tools: list[Message]
    #: The server keeps a conversation's cache under it.
    request_id: str = field(default_factory=lambda: uuid4().hex)
    #: What each of its messages may look like when it comes back: a reply has two forms.
    known: list[frozenset[str]] = field(default_factory=list)
    is_busy: bool = False
    #: A call failed in the middle: what the tokens hold is no longer what the workflow was told.
    is_broken: bool = False
    completed_at: float = 0.0

    @property
    def messages(self) -> list[Message]:
        return self.transcript.messages

    @property
    def ids(self) -> list[int]:
        """All tokens: the prompt, and after it what ``mask`` and ``logprobs`` tell of."""
        return self.transcript.context_ids

    @property
    def mask(self) -> list[int]:
        return self.transcript.mask

    @property
    def logprobs(self) -> list[float] | None:
        return self.transcript.logprobs

    @property
    def is_trainable(self) -> bool:
        """Whether anything was sampled in it."""
        return any(self.mask)

    def is_prefix_of(self, forms: Sequence[str], tools: list[Message]) -> bool:
        """Tell whether these messages continue this branch."""
        return (
            not (self.is_busy or self.is_broken)
            and self.tools == tools
            and len(self.known) < len(forms)
            and all(form in known for form, known in zip(forms, self.known, strict=False))
        )


class RecordingChatModel(TunableChatModel):
    """One session's model. ``loop`` is a verl ``AgentLoopBase``."""

    def __init__(self, loop: Any, sampling_params: Mapping[str, Any], *, has_thinking: bool = False) -> None:
        """Take ``has_thinking``: if set, what precedes ``</think>`` is not part of a reply's text."""
        self._loop, self._has_thinking = loop, has_thinking
        self._params = dict(sampling_params)
        self.branches: list[Branch] = []
        self._calls = 0
        #: Replies without the call that ``tool_choice`` asked for.
        self.missing_calls = 0
        #: Seconds that were waited for replies, calls side by side counted each.
        self.waited_s = 0.0

    @property
    def trained_branches(self) -> list[Branch]:
        """At most ``MAX_BRANCHES``, the one that was completed last at the end."""
        found = sorted(
            (each for each in self.branches if each.is_trainable), key=lambda each: each.completed_at
        )
        return found[-MAX_BRANCHES:]

    @property
    def last_branch(self) -> Branch | None:
        """The one that was completed last; one in which nothing was sampled where there is no other."""
        return max(self.branches, key=lambda each: each.completed_at, default=None)

    async def answer(self, messages: list[Message], tools: list[Message], options: Message) -> Message:
        """Return the reply to an already validated call, as plain data."""
        return await self._ask(messages, tools, options)

    async def _ask(self, messages: list[Message], tools: list[Message], options: Message) -> Message:
        if options.get("tool_choice") == "none":
            tools = []
        forms = [form_of(message) for message in messages]
        shown = [to_template(message) for message in messages]
        branch = self._find(forms, tools)
        # The forms are those of what was asked: the next call comes without the instruction.
        shown += _instruct(shown[len(branch.known) if branch else 0 :], options)
        self._calls += 1
        params = self._params_of(options)
        if branch is None:
            transcript = Transcript(self._loop, tools=tools or None)
            branch = Branch(transcript, tools)
            branch.is_busy = True
            await self._begin(branch, shown)
            self.branches.append(branch)
        else:
            branch.is_busy = True
        try:
            return await self._extend(branch, forms, shown, params, options)
        except BaseException:
            branch.is_broken = True
            raise
        finally:
            branch.is_busy = False

    def _shows_tools(self) -> bool:
        """Return whether the chat template shows tools; looked up once per worker (one tokenizer for all)."""
        found = getattr(self._loop, "shows_tools", None)
        if found is None:
            found = self._loop.shows_tools = shows_tools(self._loop.tokenizer)
        return bool(found)

    def _find(self, forms: list[str], tools: list[Message]) -> Branch | None:
        fitting = [branch for branch in self.branches if branch.is_prefix_of(forms, tools)]
        return max(fitting, key=lambda branch: len(branch.known), default=None)

    async def _begin(self, branch: Branch, messages: list[Message]) -> None:
        if branch.tools and not self._shows_tools():
            raise ModelError(
                "the model's chat template does not support tools: choose a model with tool support, or set"
                f" tool_template to {HERMES}"
            )
        try:
            await branch.transcript.begin(messages)
        except PromptTooLong as error:
            raise ContextExceeded(str(error)) from error
        except Exception as error:
            raise ModelError(f"the messages cannot be rendered: {error}") from error

    async def _extend(
        self, branch: Branch, forms: list[str], messages: list[Message], params: Message, options: Message
    ) -> Message:
        transcript = branch.transcript
        if branch.known:
            try:
                has_room = await transcript.show(messages[len(branch.known) :])
            except (ValueError, TemplateError) as error:
                raise ModelError(f"the messages cannot be rendered: {error}") from error
            if not has_room:
                raise ContextExceeded(
                    "the conversation leaves no room for a reply: at most "
                    f"{transcript.max_response} tokens may follow its prompt"
                )
        prompt_tokens = len(branch.ids)
        wanted = (
            options.get("max_completion_tokens")
            or options.get("max_tokens")
            or self._params.get("max_tokens")
        )
        room = min(transcript.room, int(wanted)) if wanted else transcript.room
        started = time.monotonic()
        text = await transcript.sample(branch.request_id, params, most_tokens=room)
        self.waited_s += time.monotonic() - started
        sampled = len(branch.ids) - prompt_tokens
        thinking, said = split_thinking(text) if self._has_thinking else ("", text)
        reply = make_reply(said, prompt_tokens, sampled, is_cut=sampled >= room, has_tools=bool(branch.tools))
        reply |= {"raw": text, "reasoning": thinking}
        if options.get("parallel_tool_calls") is False:
            reply["tool_calls"] = reply["tool_calls"][:1]
        self.missing_calls += not _has_asked_call(reply, options.get("tool_choice"))
        transcript.note_calls(
            [ToolCall(name=call["name"], arguments=call["arguments"]) for call in reply["tool_calls"]]
        )
        branch.known = [frozenset({form}) for form in forms]
        branch.known.append(
            frozenset({form_of({"role": "assistant", "content": text}), _form_of_reply(reply)})
        )
        branch.completed_at = time.monotonic()
        return reply

    def _params_of(self, options: Message) -> Message:
        params = {name: value for name, value in self._params.items() if name != "max_tokens"}
        if options.get("stop"):
            params["stop"] = options["stop"]
        if "seed" in params:  # else calls with equal messages would have equal replies
            params["seed"] = derive_seed(params["seed"], self._calls)
        return params


def make_reply(text: str, prompt_tokens: int, sampled: int, *, is_cut: bool, has_tools: bool) -> Message:
    """Return a reply as plain data: the text, and its parsed calls if tools were offered."""
    parsed = parse_tool_calls(text) if has_tools else None
    calls = [
        {"id": f"call_{place}", "name": call.name, "arguments": call.arguments}
        for place, call in enumerate(parsed.calls if parsed else ())
    ]
    ended = "length" if is_cut else "tool_calls" if calls else "stop"
    return {
        "text": parsed.prose if parsed and calls else text,
        "raw": text,
        "tool_calls": calls,
        "finish_reason": ended,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": sampled,
    }


def split_thinking(text: str) -> tuple[str, str]:
    """Split a reply into the thinking and the answer; a reply cut off while thinking has no answer.

    >>> split_thinking("<think>2+2</think>\\n\\n4")
    ('2+2', '4')
    """
    before, separator, after = text.partition("</think>")
    opened = before.lstrip().startswith("<think>")
    if not separator and not opened:
        return "", text
    return before.replace("<think>", "", 1).strip(), after.lstrip("\n")


def _has_asked_call(reply: Message, choice: object) -> bool:
    """Tell whether a reply has the call that a choice asks for; forced tokens would not be the policy's."""
    name = named_tool(choice)
    if name is None and choice != "required":
        return True
    return any(name in (None, call["name"]) for call in reply["tool_calls"])


def _instruct(messages: list[Message], options: Message) -> list[Message]:
    """Say what is asked of the reply in the user's words, where they are the last of the new messages.

    Else, as after a tool's result, what is returned follows the messages: it is rendered behind them, so that
    the tokens before it stay as they are.
    """
    told = []
    choice = options.get("tool_choice")
    if (name := named_tool(choice)) is not None:
        told.append(f"Call the tool {name}.")
    elif choice == "required":
        told.append("Call one of the tools.")
    form = options.get("response_format")
    kind = form.get("type") if isinstance(form, Mapping) else None
    if kind == "json_object":
        told.append("Answer with a JSON object alone.")
    elif kind == "json_schema":
        schema = (form or {}).get("json_schema", {}).get("schema", {})
        told.append(f"Answer with JSON alone that follows this schema: {json.dumps(schema)}")
    if not told:
        return []
    last = messages[-1]
    if last["role"] != "user":
        return [{"role": "user", "content": "\n\n".join(told)}]
    last["content"] = "\n\n".join([last["content"], *told])
    return []


def form_of(message: Mapping[str, Any]) -> str:
    """Return a key for comparing messages: role, content and calls, without the calls' IDs."""
    plain = to_template(message)
    calls = [
        (call["function"]["name"], call["function"]["arguments"]) for call in plain.get("tool_calls", ())
    ]
    form = [plain["role"], plain["content"], calls, plain.get("name")]
    return json.dumps(form, sort_keys=True, default=str)


def to_template(message: Mapping[str, Any]) -> Message:
    """Convert a message for chat templates: content as text, arguments of calls as objects."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    plain: Message = {"role": message["role"], "content": "" if content is None else str(content)}
    if calls := message.get("tool_calls"):
        plain["tool_calls"] = [_plain_call(call) for call in calls]
    for name in ("name", "tool_call_id"):
        if message.get(name) is not None:
            plain[name] = message[name]
    return plain


def _plain_call(call: Any) -> Message:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise ModelError("a call in tool_calls has no function")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            raise ModelError("the arguments of a call in tool_calls are not valid JSON") from None
    return {"type": "function", "function": {"name": function.get("name"), "arguments": arguments}}


def _form_of_reply(reply: Message) -> str:
    return form_of(read_reply(reply).message)
