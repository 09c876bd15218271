"""Chat templates that insist that user and assistant alternate (Mistral, Gemma), in episodes.

Such a template refuses a user's message behind a tool's result, and two messages of the user in a row, in
which verl's continuous-token builder renders what a user says next.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Message = dict[str, Any]
_USER: Message = {"role": "user", "content": "Who?"}
_REPLY: Message = {"role": "assistant", "content": "Nobody."}
_SYSTEM: Message = {"role": "system", "content": "Answer."}
_TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}},
}
_CALL: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"type": "function", "function": {"name": "look", "arguments": {}}}],
}
_RESULT: Message = {"role": "tool", "content": "nothing"}


def joins_results(loop: Any) -> bool:
    """Tell whether the template of a loop's tokenizer accepts results, but no user message after them.

    Looked up once a loop: it serves all episodes with one tokenizer.
    """
    found = getattr(loop, "joins_results", None)
    if found is None:
        turns: list[Message] = [_USER, _CALL, _RESULT]
        renders = _renders(loop.tokenizer, turns, tools=[_TOOL])
        found = renders and not _renders(loop.tokenizer, [*turns, _USER], tools=[_TOOL])
        loop.joins_results = found
    return bool(found)


def join_after_results(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Append each user message that follows a tool result to that result."""
    joined: list[Message] = []
    for message in messages:
        if message["role"] == "user" and joined and joined[-1]["role"] == "tool":
            text = f"{joined[-1]['content']}\n\n{message['content']}"
            joined[-1] = {**joined[-1], "content": text}
        else:
            joined.append(dict(message))
    return joined


def render_users_in_turn(builder: Any, tokenizer: Any) -> None:
    """Let a ``ContinuousTokenBuilder`` of verl 0.9.1 render a user's next message behind a reply.

    Only where the template refuses it behind a user's message, as verl has it: others stay as they are.
    """
    refuses = not _renders(tokenizer, [_SYSTEM, _USER, _USER])
    if not refuses or not _renders(tokenizer, [_USER, _REPLY, _USER]):
        return
    render_single = builder._tokenize_single_non_tool

    def render_in_turn(message: Message, **options: Any) -> list[int]:
        if message.get("role") != "user":
            return list(render_single(message, **options))
        return list(builder.render_delta_token_id([_USER, _REPLY], [message], **options))

    builder._tokenize_single_non_tool = render_in_turn


def _renders(tokenizer: Any, messages: list[Message], *, tools: Any = None) -> bool:
    from jinja2 import TemplateError

    try:
        tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
    except (TemplateError, ValueError, TypeError, KeyError):
        return False
    return True
