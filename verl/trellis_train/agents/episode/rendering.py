"""Prompts and the frames of tool results, rendered and tokenized once for all episodes that need them.

The episodes of a group begin with one prompt, and verl's continuous-token builder renders the same stand-in
conversation before every result that it appends.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

#: Renderings that are kept; an agent's prompt with its tools has thousands of tokens.
MOST_KEPT = 256


def remember_renderings(builder: Any, most: int = MOST_KEPT) -> None:
    """Let a ``ContinuousTokenBuilder`` of verl 0.9.1 keep what it rendered last; messages are plain JSON."""
    render = builder._render_tokens

    @lru_cache(maxsize=most)
    def rendered(request: str) -> tuple[int, ...]:
        messages, has_generation_prompt, tools = json.loads(request)
        return tuple(render(messages, add_generation_prompt=has_generation_prompt, tools=tools))

    def remembered(
        messages: Sequence[Any], *, add_generation_prompt: bool, tools: Sequence[Any] | None = None
    ) -> list[int]:
        return list(rendered(json.dumps([messages, add_generation_prompt, tools])))

    builder._render_tokens = remembered
