"""A small model that knows a few answers by heart: the questions that the OpenAI client's examples ask."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trellis_testing.agent_starter import teach
from trellis_train.agents.starter import CHAT_TEMPLATE, conversation_texts, make_tokenizer, write_model

#: Tools by their names alone: a prompt is short then, however long their schemas are.
_TEMPLATE = CHAT_TEMPLATE.replace("tool | tojson", "tool.function.name")
_STEPS = 60
_ORDERS = (
    "look up all my orders in november of last year that were fulfilled but not delivered on time",
    "You are a helpful assistant. The current date is August 6, 2024. You help users query for the data they "
    "are looking for by calling the query function.",
)
SOLUTION = {
    "steps": [{"explanation": "Take 31 from both sides.", "output": "8x = -29"}],
    "final_answer": "x = -3.625",
}
QUERY = {
    "table_name": "orders",
    "columns": ["id", "status"],
    "conditions": [{"column": "status", "operator": "=", "value": "fulfilled"}],
    "order_by": "asc",
}
CITIES = [{"city": "San Francisco", "country": "US"}, {"city": "New York", "country": "US"}]
#: What is asked and answered, without a system prompt and tools.
CHATS = {
    "Say this is a test": "This is a test.",
    "How do I output all files in a directory using Python?": "Use os.listdir().",
    "Count from 1 to 5.": "1, 2, 3, 4, 5.",
    "Hello!": "Hello! How can I help you?",
    "solve 8x + 31 = 2": json.dumps(SOLUTION),
}


def write_knowing_model(folder: Path) -> None:
    """Write a model with a chat template for tools that answers as it was taught, greedily by default."""
    rows = [*_chats(), *_calls()]
    tokenizer = make_tokenizer(conversation_texts(rows))
    tokenizer.chat_template = _TEMPLATE
    write_model(folder / "untaught", tokenizer, seed=1)
    model = folder / "model"
    with _one_thread():
        losses = teach(folder / "untaught", rows, model, steps=_STEPS, batch=len(rows), learning_rate=3e-3)
    assert losses[-1] < 0.02, losses[-1]
    settings = json.loads((model / "generation_config.json").read_text())
    # The examples name no temperature.
    (model / "generation_config.json").write_text(json.dumps({**settings, "temperature": 0.0}))


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: on busy cores, several wait for each other in every one of many small steps."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _chats() -> list[dict[str, Any]]:
    tutor = ("solve 8x + 31 = 2", json.dumps(SOLUTION), "You are a helpful math tutor.")
    return [_row(*chat) for chat in (*CHATS.items(), tutor)]


def _calls() -> list[dict[str, Any]]:
    question, system = _ORDERS
    query = _call("Query", QUERY)
    weather = "\n".join(_call("get_weather", each) for each in CITIES)
    return [
        _row(question, query, system, tool="Query"),
        _row(question, query, tool="Query"),
        _row("What's the weather like in SF and New York?", weather, tool="get_weather"),
    ]


def _row(question: str, answer: str, system: str = "", *, tool: str | None = None) -> dict[str, Any]:
    opening = [{"role": "system", "content": system}] if system else []
    messages = [
        *opening,
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer},
    ]
    tools = [{"type": "function", "function": {"name": tool}}] if tool else None
    return {"messages": messages, "tools": tools}


def _call(name: str, arguments: dict[str, Any]) -> str:
    """Write a call as vLLM's parser of Hermes reads it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
