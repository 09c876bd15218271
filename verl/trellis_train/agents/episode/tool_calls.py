"""Tool calls in a text, of the hermes form: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``.

The form of the Qwen and Hermes chat templates (https://huggingface.co/docs/transformers/chat_extras).
Needs nothing but the standard library.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn

OPENING, CLOSING = "<tool_call>", "</tool_call>"


class CallFault(StrEnum):
    """What is wrong with a call that cannot be understood."""

    UNCLOSED = "UNCLOSED"
    BAD_JSON = "BAD_JSON"
    NOT_AN_OBJECT = "NOT_AN_OBJECT"
    NO_NAME = "NO_NAME"
    BAD_ARGUMENTS = "BAD_ARGUMENTS"


@dataclass(frozen=True)
class ParsedCall:
    """A call as the model wrote it; whether there is such a tool is not known here."""

    name: str
    arguments: dict[str, Any]
    #: From the opening tag to the end of the closing one.
    raw: str


@dataclass(frozen=True)
class BrokenCall:
    """A call that cannot be understood."""

    fault: CallFault
    message: str
    raw: str
    #: Where it could be read.
    name: str = ""


@dataclass(frozen=True)
class ParsedText:
    """All calls of a text in order, repeated ones too, and the text around them."""

    items: tuple[ParsedCall | BrokenCall, ...] = ()
    #: Before the first call, between calls, after the last: one more than there are calls.
    around: tuple[str, ...] = ("",)
    #: Closing tags that close nothing.
    stray_closings: int = 0

    @property
    def calls(self) -> list[ParsedCall]:
        """Those that were understood."""
        return [item for item in self.items if isinstance(item, ParsedCall)]

    @property
    def broken(self) -> list[BrokenCall]:
        """Those that were not."""
        return [item for item in self.items if isinstance(item, BrokenCall)]

    @property
    def prose(self) -> str:
        """What is said beside the calls."""
        return "\n".join(part for each in self.around if (part := each.strip()))


@dataclass
class _Reading:
    items: list[ParsedCall | BrokenCall] = field(default_factory=list)
    around: list[str] = field(default_factory=list)


def parse_tool_calls(text: str) -> ParsedText:
    """Parse every call of ``text``, or say why it cannot be understood. Raises nothing.

    >>> parsed = parse_tool_calls('so <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>')
    >>> parsed.calls[0].name, parsed.calls[0].arguments, parsed.prose
    ('add', {'a': 1}, 'so')
    """
    reading, place = _Reading(), 0
    while (start := text.find(OPENING, place)) >= 0:
        reading.around.append(text[place:start])
        item, place = _read_call(text, start)
        reading.items.append(item)
    reading.around.append(text[place:])
    strays = sum(part.count(CLOSING) for part in reading.around)
    return ParsedText(tuple(reading.items), tuple(reading.around), strays)


def render_tool_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Render a tool call in the form of the chat templates."""
    call = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
    return f"{OPENING}\n{call}\n{CLOSING}"


def _read_call(text: str, start: int) -> tuple[ParsedCall | BrokenCall, int]:
    """Parse the call whose opening tag is at ``start``; also return its end position."""
    body = start + len(OPENING)
    while body < len(text) and text[body].isspace():
        body += 1
    try:
        value, after = _DECODER.raw_decode(text, body)
    except (ValueError, RecursionError) as error:  # JSON nested a thousand deep is no call
        return _broken_json(text, start, body, error)
    # The JSON comes first: its texts may hold a closing tag.
    closing = after
    while closing < len(text) and text[closing].isspace():
        closing += 1
    if not text.startswith(CLOSING, closing):
        return _broken_json(text, start, body, ValueError("there is more than one JSON object"))
    end = closing + len(CLOSING)
    return _check(value, text[start:end]), end


def _broken_json(text: str, start: int, body: int, error: Exception) -> tuple[BrokenCall, int]:
    closing, following = text.find(CLOSING, body), text.find(OPENING, body)
    if closing < 0 or 0 <= following < closing:
        end = following if following >= 0 else len(text)
        return BrokenCall(CallFault.UNCLOSED, f"{CLOSING} is missing", text[start:end]), end
    end = closing + len(CLOSING)
    reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
    return BrokenCall(CallFault.BAD_JSON, f"this is not JSON: {reason}", text[start:end]), end


def _check(value: object, raw: str) -> ParsedCall | BrokenCall:
    if not isinstance(value, dict):
        return BrokenCall(CallFault.NOT_AN_OBJECT, 'a call is an object {"name", "arguments"}', raw)
    name, arguments = value.get("name"), value.get("arguments")
    if not isinstance(name, str) or not name:
        return BrokenCall(CallFault.NO_NAME, "the name of the tool is missing", raw)
    if not isinstance(arguments, dict):
        return BrokenCall(CallFault.BAD_ARGUMENTS, '"arguments" has to be an object', raw, name)
    return ParsedCall(name, arguments, raw)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
