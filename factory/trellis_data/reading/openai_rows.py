"""Files for fine-tuning as OpenAI's API takes them, brought into the platform's formats line by line.

Chats stay chats (their tools become JSON text, as no two schemas have the same fields), pairs become
prompt, chosen and rejected, and prompts with fields for graders become rows for reinforcement learning.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from trellis_data.reading.json_values import Unreadable, decode_line
from trellis_data.reading.problems import MAX_ROW_BYTES, UnreadableFile
from trellis_data.reading.sources import LocalSource, SourceFile

#: Column of the files that are written, and what graders look fields up in.
ITEM = "item"
ANSWER = "reference_answer"
#: Metrics of the validation bear it; rows of other formats have the same (``trellis_recipes``).
_SOURCE = "dataset"
_CHAT = frozenset({"messages", "tools", "parallel_tool_calls", "functions"})
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class BadLine(ValueError):
    """A line is no example; says why."""


class OpenAiSource(LocalSource):
    """An uploaded file in OpenAI's form; what is brought is a copy in ours."""

    def bring(self, file: SourceFile, work: Path) -> Path:
        """Convert the file and return the copy. Raise ``UnreadableFile`` that names the first bad line."""
        target = work / "converted.jsonl"
        with super().bring(file, work).open("rb") as stream, target.open("wb") as out:
            convert_lines(stream, out)
        return target


def convert_lines(stream: BinaryIO, out: BinaryIO) -> str:
    """Convert a whole file; the kind of its rows (``chat``, ``pair``, ``prompt`` or ``completion``)."""
    found: str | None = None
    number = 0
    while line := stream.readline(MAX_ROW_BYTES + 1):
        number += 1
        if not line.strip():
            continue
        try:
            kind, row = convert_line(line)
            if found is not None and kind != found:
                raise BadLine(f"it is a {kind}, and the lines before it are {found}s")
        except BadLine as error:
            raise UnreadableFile("invalid_example", f"Line {number} is no example: {error}.") from error
        found = kind
        out.write(orjson.dumps(row) + b"\n")
    if found is None:
        raise UnreadableFile("dataset_empty", "The file has no lines.")
    return found


def convert_line(line: bytes) -> tuple[str, dict[str, Any]]:
    """Convert an example; return its kind and its row. Raise ``BadLine`` if it is invalid."""
    if len(line) > MAX_ROW_BYTES:
        raise BadLine(f"it is longer than {MAX_ROW_BYTES // 1024 // 1024} MiB")
    row = decode_line(line)
    if isinstance(row, Unreadable):
        raise BadLine(row.reason)
    for key, (kind, convert) in _KINDS.items():
        if key in row:
            return kind(row), convert(row)
    raise BadLine("it has neither 'messages', nor 'input' with 'preferred_output', nor 'prompt'")


def _chat_or_prompt(row: Mapping[str, Any]) -> dict[str, Any]:
    return _chat(row) if _kind_of_messages(row) == "chat" else _prompt(row)


def _kind_of_messages(row: Mapping[str, Any]) -> str:
    """Return "chat" if the last message is the assistant's, else "prompt": to be answered and graded."""
    messages = row["messages"]
    last = messages[-1] if isinstance(messages, list) and messages else None
    is_answered = isinstance(last, Mapping) and last.get("role") == "assistant"
    return "chat" if is_answered else "prompt"


def _chat(row: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := sorted(set(row) - _CHAT):
        raise BadLine(f"a chat has no field '{unknown[0]}'")
    if row.get("functions"):
        raise BadLine("'functions' are not supported; give 'tools'")
    messages = _messages(row["messages"], "messages")
    learned = [each for each in messages if each["role"] == "assistant" and each.get("weight") != 0]
    if not learned:
        raise BadLine("no message of the assistant is learned: each has the weight 0")
    _check_parallel_calls(row, messages)
    return {"messages": messages, **_tools(row)}


def _prompt(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a prompt; all other fields of the row are passed to graders as ``item``."""
    messages = _messages(row["messages"], "messages")
    item = {name: value for name, value in row.items() if name != "messages"}
    if item.pop("tools", None):
        raise BadLine("'tools' are not supported in prompts for reinforcement")
    _check_parallel_calls(item, messages)
    item.pop("parallel_tool_calls", None)
    answer = item.get(ANSWER, "")
    return {
        "data_source": _SOURCE,
        "prompt": messages,
        "ability": "general",
        "reward_model": {"style": "rule", "ground_truth": _as_text(answer)},
        "extra_info": {ITEM: json.dumps(item, ensure_ascii=False)},
    }


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    given = row["input"]
    if not isinstance(given, Mapping):
        raise BadLine("'input' must be an object with 'messages'")
    if given.get("tools"):
        raise BadLine("'input.tools' are not supported in pairs")
    sides = {}
    for name, field in (("chosen", "preferred_output"), ("rejected", "non_preferred_output")):
        sides[name] = _messages(row.get(field), field)
        if sides[name][0]["role"] != "assistant":
            raise BadLine(f"'{field}' must begin with the assistant")
    prompt = _messages(given.get("messages"), "input.messages")
    _check_parallel_calls(given, [*prompt, *sides["chosen"]])
    return {"prompt": prompt, **sides}


def _completion(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an example in the older form with a prompt and a completion."""
    texts = {name: row.get(name) for name in ("prompt", "completion")}
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise BadLine(f"'{name}' must be a text that is not empty")
    return texts


def _messages(value: Any, field: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise BadLine(f"'{field}' must be a list of messages")
    return [_message(each, f"{field}[{number}]") for number, each in enumerate(value)]


def _message(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadLine(f"{place} must be an object with role and content")
    role = value.get("role")
    if role not in _ROLES:
        raise BadLine(f"{place} has the role {role!r}")
    calls = value.get("tool_calls") if role == "assistant" else None
    if value.get("function_call"):
        raise BadLine(f"{place}: 'function_call' is not supported; give 'tool_calls'")
    message = {"role": role, "content": _text(value.get("content"), place, may_be_empty=bool(calls))}
    for name in ("name", "tool_call_id"):
        if isinstance(value.get(name), str):
            message[name] = value[name]
    if calls:
        message["tool_calls"] = calls
    if value.get("weight") is not None:
        message["weight"] = _weight(value["weight"], role, place)
    return message


def _weight(value: Any, role: str, place: str) -> int:
    if role != "assistant":
        raise BadLine(f"{place}: only a message of the assistant has a weight")
    if isinstance(value, bool) or value not in (0, 1):
        raise BadLine(f"{place}: the weight must be 0 or 1, not {value!r}")
    return int(value)


def _text(content: Any, place: str, *, may_be_empty: bool) -> str:
    """Return a text, or the joined texts of its parts."""
    if isinstance(content, list):
        content = "".join(_part(part, place) for part in content)
    if content is None and may_be_empty:
        return ""
    if not isinstance(content, str):
        raise BadLine(f"{place} has no text in 'content'")
    return content


def _part(part: Any, place: str) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        raise BadLine(f"{place} has a part of the type {kind!r}; only texts are supported")
    return str(part["text"])


def _tools(row: Mapping[str, Any]) -> dict[str, str]:
    tools = row.get("tools")
    if not tools:
        return {}
    if not isinstance(tools, list):
        raise BadLine("'tools' must be a list")
    return {"tools": json.dumps(tools, ensure_ascii=False)}


def _check_parallel_calls(row: Mapping[str, Any], messages: list[dict[str, Any]]) -> None:
    """Refuse what contradicts the field. Nothing else of it is kept: no chat template shows it to a model."""
    is_parallel = row.get("parallel_tool_calls")
    if not isinstance(is_parallel, bool | None):
        raise BadLine("'parallel_tool_calls' must be true or false")
    calls = [each.get("tool_calls") for each in messages]
    if is_parallel is False and any(isinstance(each, list) and len(each) > 1 for each in calls):
        raise BadLine("'parallel_tool_calls' is false, and a message has several calls")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_Convert = Callable[[Mapping[str, Any]], dict[str, Any]]
#: By the field that tells: what the examples are called, and what converts them.
_KINDS: dict[str, tuple[Callable[[Mapping[str, Any]], str], _Convert]] = {
    "preferred_output": (lambda _: "pair", lambda row: _pair({"input": None, **row})),
    "messages": (_kind_of_messages, _chat_or_prompt),
    "completion": (lambda _: "completion", _completion),
}
