"""Requests by seed that each one tool fits, to train and measure the retrieval of tools."""

import random
from collections.abc import Iterator
from typing import Any

from trellis_train.agents.tooluse.data.dialogs import CHINESE_EVERY
from trellis_train.agents.tooluse.data.requests import frame, make_request
from trellis_train.agents.tooluse.data.tools import Tool, Tools
from trellis_train.agents.tooluse.data.words import SPLITS, Language, Split

#: Queries for each tool.
PER_TOOL: dict[Split, int] = {"train": 3, "dev": 1, "test": 1}
HARD_NEGATIVES = 4


def make_tool_queries(tools: Tools, *, seed: int) -> Iterator[dict[str, Any]]:
    """Generate the rows of ``agent_retrieval`` by split; every tool occurs in each split."""
    number = 0
    for split in SPLITS:
        for tool in tools.all:
            for _ in range(PER_TOOL[split]):
                language: Language = "zh" if number % CHINESE_EVERY == CHINESE_EVERY - 1 else "en"
                draw = random.Random(f"{seed}:agent_retrieval:{number}")  # noqa: S311 - no secret
                request = make_request(draw, tool, language, split)
                query, name = frame(draw, "frames", language, split, request=request.text)
                yield {
                    "id": f"agent_retrieval-{number:05d}",
                    "split": split,
                    "language": language,
                    "query": query,
                    "tool": tool.name,
                    "category": tool.category,
                    "hard_negatives": _mislead(draw, tools, tool),
                    "templates": [name, request.template],
                }
                number += 1


def _mislead(draw: random.Random, tools: Tools, tool: Tool) -> list[str]:
    """Draw tools that are easily confused with this one: half share its object, half its action."""
    half = HARD_NEGATIVES // 2
    chosen = draw.sample(tools.on_same_object(tool), half)
    chosen += draw.sample(tools.of_same_action(tool), HARD_NEGATIVES - half)
    return [other.name for other in chosen]
