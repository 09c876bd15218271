"""Conversations in OpenAI's form with all that a message may hold, and ShareGPT's turns."""

import json
from collections.abc import Mapping
from typing import Any

from trellis_contracts.row_formats import ROLES
from trellis_recipes.data.row_values import BadRow, Cell

from trellis_data.formats.shapes import MESSAGE_FIELDS
from trellis_data.sharegpt_roles import CALL_TURN, SPEAKERS, TURN_NAMES

RichMessage = dict[str, Any]


def rich_messages_in(cell: Cell) -> list[RichMessage]:
    """Parse a conversation with tool calls; texts in several parts are joined."""
    if not isinstance(cell.value, list) or not cell.value:
        raise BadRow(f"'{cell.column}' must be a list of messages", "missing")
    return [_message(message, f"message {n} of '{cell.column}'") for n, message in enumerate(cell.value, 1)]


def _message(message: Any, place: str) -> RichMessage:
    if not isinstance(message, Mapping):
        raise BadRow(f"{place} is not an object with role and content")
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadRow(f"{place} has the role {role!r}", "unknown_role")
    made: RichMessage = {"role": role, "content": _content(message.get("content"), place)}
    calls = message.get("tool_calls") or _old_call(message.get("function_call"))
    if calls:
        made["tool_calls"] = [_call(call, place) for call in calls]
    for name in ("name", "tool_call_id"):
        if message.get(name) is not None:
            made[name] = str(message[name])
    if made["content"] is None and not calls:
        raise BadRow(f"{place} has no text in 'content'", "no_text")
    return made


def _content(content: Any, place: str) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRow(f"{place} has no text in 'content'", "no_text")
    texts = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) else part
        if not isinstance(text, str):
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise BadRow(f"{place} holds a part that is no text ({kind})", "content_not_text")
        texts.append(text)
    return "".join(texts)


def _old_call(call: Any) -> list[Any]:
    """Convert a message's ``function_call``, the older field for a single call, to a list of calls."""
    return [{"function": call}] if isinstance(call, Mapping) and call.get("name") else []


def _call(call: Any, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise BadRow(f"{place} calls a tool without a name", "bad_tool_call")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        # Rows that went through a table have every argument's name, without a value where it is not theirs.
        given = {key: value for key, value in (arguments or {}).items() if value is not None}
        arguments = json.dumps(given, ensure_ascii=False)
    return {
        "id": call.get("id"),
        "type": call.get("type") or "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def from_turns(cell: Cell, extra: Mapping[str, Any]) -> list[RichMessage]:
    """Convert ShareGPT turns to messages; a call that follows a text of the same speaker joins it."""
    if not isinstance(cell.value, list) or not cell.value:
        raise BadRow(f"'{cell.column}' must be a list of turns", "missing")
    messages: list[RichMessage] = []
    for number, turn in enumerate(cell.value, start=1):
        place = f"turn {number} of '{cell.column}'"
        speaker = turn.get("from") if isinstance(turn, Mapping) else None
        value = turn.get("value") if isinstance(turn, Mapping) else None
        if not isinstance(speaker, str) or not isinstance(value, str):
            raise BadRow(f"{place} is not an object with from and value")
        if speaker == CALL_TURN:
            calls = _parse_calls(value, place)
            if not (messages and messages[-1]["role"] == "assistant" and "tool_calls" not in messages[-1]):
                messages.append({"role": "assistant", "content": None})
            messages[-1]["tool_calls"] = calls
            continue
        role = SPEAKERS.get(speaker, speaker)
        if role not in ROLES:
            raise BadRow(f"{place} is from {speaker!r}", "unknown_role")
        messages.append({"role": role, "content": value})
    _put_back(messages, extra.get("message_fields") or {})
    return messages


def _parse_calls(value: str, place: str) -> list[dict[str, Any]]:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadRow(f"{place} is a call that is no JSON", "bad_tool_call") from error
    calls = parsed if isinstance(parsed, list) else [parsed]
    return [_call({"function": call}, place) for call in calls]


def to_turns(messages: list[RichMessage]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Convert messages to ShareGPT turns; also return what those cannot represent."""
    turns: list[dict[str, Any]] = []
    left: dict[str, Any] = {}
    for number, message in enumerate(messages):
        calls = message.get("tool_calls")
        if message["content"] is not None:
            role = message["role"]
            turns.append({"from": TURN_NAMES.get(role, role), "value": message["content"]})
        if calls:
            made = [_open_call(call) for call in calls]
            value = json.dumps(made[0] if len(made) == 1 else made, ensure_ascii=False)
            turns.append({"from": CALL_TURN, "value": value})
        fields = {name: message[name] for name in ("name", "tool_call_id") if message.get(name) is not None}
        ids = [call.get("id") for call in calls or []]
        if any(each is not None for each in ids):
            fields["call_ids"] = ids
        if fields:
            left[str(number)] = fields
    return turns, {"message_fields": left} if left else {}


def _open_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except (ValueError, RecursionError):
        arguments = function["arguments"]
    return {"name": function["name"], "arguments": arguments}


def _put_back(messages: list[RichMessage], fields: Mapping[str, Any]) -> None:
    """Restore names and ids; where the conversation has changed since, they no longer belong anywhere."""
    for number, values in fields.items():
        if not number.isdigit() or int(number) >= len(messages) or not isinstance(values, Mapping):
            continue
        message = messages[int(number)]
        message.update({name: values[name] for name in MESSAGE_FIELDS if isinstance(values.get(name), str)})
        ids, calls = values.get("call_ids") or [], message.get("tool_calls") or []
        if len(ids) == len(calls):
            for call, each in zip(calls, ids, strict=True):
                call["id"] = each
