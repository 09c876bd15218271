"""A smolagents agent with a calculator tool; it is synchronous, so it runs in a thread.

smolagents/
    workflow.py
    requirements.txt    packages installed in the sandbox
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
    """Run the agent and return what it passes to its tool ``final_answer``."""
    policy = OpenAIModel("policy", client=client)
    agent = ToolCallingAgent(tools=[add], model=policy, max_steps=4, verbosity_level=LogLevel.OFF)
    return str(agent.run(question))


async def workflow(task: dict[str, Any], model: TunableChatModel) -> float:
    """Return 1 if the answer is correct."""
    found = await asyncio.to_thread(solve, model.sync_client, task["question"])
    return float(str(task["answer"]) in found)
