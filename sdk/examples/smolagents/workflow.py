"""An agent of smolagents that calculates: its code does not await, so it runs in a thread.

smolagents/
    workflow.py
    requirements.txt    what the sandbox has beside Python
"""

import asyncio
from typing import Any

from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool
from trellis import TunableChatModel


@tool
def add(a: float, b: float) -> float:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


def solve(client: Any, question: str) -> str:
    """Run the agent; its last word is what it gives to its tool ``final_answer``."""
    policy = OpenAIModel("policy", client=client)
    agent = ToolCallingAgent(tools=[add], model=policy, max_steps=4, verbosity_level=LogLevel.OFF)
    return str(agent.run(question))


async def workflow(task: dict[str, Any], model: TunableChatModel) -> float:
    """Give 1 where the answer is right."""
    found = await asyncio.to_thread(solve, model.sync_client, task["question"])
    return float(str(task["answer"]) in found)
