"""verl's single-turn agent loop, prepared once for all responses to a prompt.

verl makes a loop object, renders and tokenizes the prompt and changes threads twice
for each response. The loop keeps nothing between responses, and all those of a group
have the same prompt.
"""

from typing import Any

from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

from trellis_train.rollout.synchronous_executor import Inline

#: Prompts whose tokens are kept: more than are ever answered at a time would gain nothing.
MAX_PROMPTS = 4096


class SharedSingleTurnLoop(SingleTurnAgentLoop):
    """Answers any number of prompts, of text."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.loop = Inline()
        self._prompts: dict[str, list[int]] = {}

    async def ct_build_initial_tokens(
        self, messages: list[dict[str, Any]], tools: Any = None, **media: Any
    ) -> list[int]:
        if tools or any(value for name, value in media.items() if name != "mm_inputs_out"):
            return await super().ct_build_initial_tokens(messages, tools, **media)
        key = repr(messages)
        tokens = self._prompts.get(key)
        if tokens is None:
            tokens = await super().ct_build_initial_tokens(messages)
            if len(self._prompts) >= MAX_PROMPTS:
                self._prompts.clear()
            self._prompts[key] = tokens
        return list(tokens)
