"""A dialog as a row to train on: ``{input, output, task_type, metadata, messages}``.

Trainers learn from ``messages``: what stands in the assistant's turns, text and calls, is learned; the
system's text with the tools, the user's turns and the results of tools only give context.
"""

from collections.abc import Mapping
from typing import Any

from trellis_train.agents.tooluse.data.words import phrasing
from trellis_train.agents.tooluse.formatting.hermes import join_results, write_system, write_turn
from trellis_train.agents.tooluse.formatting.sampling import TaskType
from trellis_train.agents.tooluse.formatting.task_types import BadDialog, decide_task_type

_ROLES = ("user", "assistant", "tool")


def task_type_of(dialog: Mapping[str, Any]) -> TaskType:
    """Determine the task type that a dialog trains. Raises ``BadDialog``."""
    return decide_task_type(
        metadata=dialog.get("metadata"),
        tools=tools_called(dialog),
        turns=len(dialog["turns"]),
        goal=str(dialog.get("goal") or dialog["turns"][0]["content"]),
    )


def tools_called(dialog: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that are called, each once, in the order of their first call."""
    calls = (call["name"] for turn in dialog["turns"] for call in turn.get("calls", ()))
    return list(dict.fromkeys(calls))


def format_dialog(
    dialog: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]], *, distractors: int | None = None
) -> dict[str, Any]:
    """Format a dialog as a row. ``tools``: rows of ``agent_tools`` by name. Raises ``BadDialog``.

    ``distractors``: how many of the tools that are offered but not called the system's text shows; None for
    all of them. Fewer make shorter prompts, for small models.
    """
    messages = [
        {"role": "system", "content": write_prompt(dialog, tools, distractors=distractors)},
        *_turns(dialog),
    ]
    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    if not answers:
        raise BadDialog(f"dialog {dialog.get('id')!r} has no assistant turn to train on")
    return {
        "id": dialog["id"],
        "input": messages[1]["content"],
        "output": "\n".join(answers),
        "task_type": task_type_of(dialog),
        "metadata": {
            **dialog.get("metadata", {}),
            "language": dialog.get("language", "en"),
            "tools": tools_called(dialog),
            "turns": len(dialog["turns"]),
        },
        "messages": messages,
    }


def write_prompt(
    row: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]], *, distractors: int | None = None
) -> str:
    """Write the system message of a dialog or benchmark sample: the assistant's purpose and the tools."""
    return write_system(system_text(row), offered_tools(row, tools, distractors=distractors))


def system_text(row: Mapping[str, Any]) -> str:
    """Return the text on the assistant's purpose, in the language of the row."""
    known, language = phrasing()["system"], row.get("language", "en")
    if language not in known:
        raise BadDialog(f"unknown language {str(language)[:80]!r}; choose from {', '.join(known)}")
    return str(known[language])


def offered_tools(
    row: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]], *, distractors: int | None = None
) -> list[Mapping[str, Any]]:
    """Return the rows of the offered tools, which always include the called ones."""
    called = set(tools_called(row) if "turns" in row else [call["name"] for call in row["expected_calls"]])
    names, room = [], len(row["tools"]) if distractors is None else distractors
    for name in row["tools"]:
        if name not in tools:
            raise BadDialog(f"{row.get('id')!r} uses the unknown tool {name!r}")
        if name in called or room > 0:
            names.append(name)
            room -= name not in called
    missing = called - set(names)
    if missing:
        raise BadDialog(f"{row.get('id')!r} calls {sorted(missing)[0]!r}, which is not among its tools")
    return [tools[name] for name in names]


def _turns(dialog: Mapping[str, Any]) -> list[dict[str, str]]:
    messages: list[dict[str, str]] = []
    results: list[str] = []
    for turn in dialog["turns"]:
        if turn["role"] not in _ROLES:
            raise BadDialog(f"dialog {dialog.get('id')!r} has a turn with the unknown role {turn['role']!r}")
        if not isinstance(turn["content"], str):
            name = dialog.get("id")
            raise BadDialog(f"dialog {name!r} has a turn of the {turn['role']} whose content is no text")
        if turn["role"] == "tool":
            results.append(turn["content"])
            continue
        if results:
            messages.append({"role": "tool", "content": join_results(results)})
            results = []
        content = turn["content"]
        if turn["role"] == "assistant":
            content = write_turn(content, turn.get("calls", ()))
        messages.append({"role": turn["role"], "content": content})
    if results:
        messages.append({"role": "tool", "content": join_results(results)})
    return messages
