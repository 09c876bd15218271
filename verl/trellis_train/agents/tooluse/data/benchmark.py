"""The benchmark by seed: single requests with the calls that are right, and those where none is."""

import random
from collections.abc import Iterator
from typing import Any

from trellis_train.agents.tooluse.data.dialogs import CHINESE_EVERY, offer
from trellis_train.agents.tooluse.data.requests import Request, frame, frame_plan, make_request
from trellis_train.agents.tooluse.data.simulator import answer_of, simulate
from trellis_train.agents.tooluse.data.tools import Tool, Tools
from trellis_train.agents.tooluse.data.words import SPLITS, Language, Split

#: Samples of each kind and split: 660, 165 and 275 in all.
COUNTS: dict[str, dict[Split, int]] = {
    "tool_selection": {"train": 300, "dev": 75, "test": 125},
    "planning": {"train": 180, "dev": 45, "test": 75},
    "timing": {"train": 180, "dev": 45, "test": 75},
}
FEWEST_STEPS, MOST_STEPS = 5, 10
#: Steps that a plan may take beyond those that are needed.
SPARE_STEPS = 2
_SHARE_OF_PAIRS = 0.3


def make_benchmark(tools: Tools, *, seed: int) -> Iterator[dict[str, Any]]:
    """Generate the rows of ``agent_benchmark`` by split. Half of the timing rows expect no call."""
    number, on_timing = 0, 0
    for split in SPLITS:
        for kind, counts in COUNTS.items():
            for _ in range(counts[split]):
                language: Language = "zh" if number % CHINESE_EVERY == CHINESE_EVERY - 1 else "en"
                draw = random.Random(f"{seed}:agent_benchmark:{number}")  # noqa: S311 - no secret
                # In turn, so that the halves are even in every split and in both languages.
                is_negative = kind == "timing" and (on_timing // 2) % 2 == 1
                on_timing += kind == "timing"
                row = _make_row(draw, tools, kind, split, language, is_negative)
                yield {"id": f"agent_benchmark-{number:04d}", "split": split, **row}
                number += 1


def _make_row(
    draw: random.Random, tools: Tools, kind: str, split: Split, language: Language, is_negative: bool
) -> dict[str, Any]:
    chosen = _choose(draw, tools, kind)
    requests = [make_request(draw, tool, language, split) for tool in chosen]
    query, templates = _ask(draw, kind, requests, language, split, is_negative)
    calls = [] if is_negative else [request.call for request in requests]
    last, answer = requests[-1], ""
    if calls:
        answer = answer_of(last.tool.row, simulate(last.tool.row, last.arguments))
    return {
        "kind": kind,
        "language": language,
        "query": query,
        "tools": offer(draw, tools, chosen, distractors=2 if kind == "planning" else 4),
        "expected_calls": calls,
        "should_call": bool(calls),
        "optimal_steps": len(calls),
        "max_steps": len(calls) + SPARE_STEPS if calls else 0,
        "answer": answer,
        "category": chosen[0].category,
        "templates": templates,
    }


def _choose(draw: random.Random, tools: Tools, kind: str) -> list[Tool]:
    if kind == "planning":
        category = draw.choice(list(tools.by_category))
        return draw.sample(tools.by_category[category], draw.randint(FEWEST_STEPS, MOST_STEPS))
    first = draw.choice(tools.all)
    if kind == "tool_selection" and draw.random() < _SHARE_OF_PAIRS:
        return [first, draw.choice(tools.on_same_object(first))]
    return [first]


def _ask(
    draw: random.Random,
    kind: str,
    requests: list[Request],
    language: Language,
    split: Split,
    is_negative: bool,
) -> tuple[str, list[str]]:
    """Return the text of a request and the names of its wordings."""
    if kind == "planning":
        return frame_plan(draw, requests, language, split)
    first = requests[0]
    if len(requests) == 2:
        text, name = frame(draw, "twice", language, split, request=first.text, second=requests[1].text)
    elif kind == "tool_selection":
        text, name = frame(draw, "frames", language, split, request=first.text)
    else:
        path = draw.choice(("hold", "asked_only")) if is_negative else "if_then"
        text, name = frame(draw, path, language, split, request=first.text)
    return text, [name, *(request.template for request in requests)]
