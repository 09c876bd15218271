"""An OpenAI Agents SDK agent with a calculator tool."""

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
from trellis import TunableChatModel


@function_tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


async def workflow(task: dict[str, Any], model: TunableChatModel) -> float:
    """Return 1 if the agent's final output contains the answer."""
    policy = OpenAIChatCompletionsModel(model="policy", openai_client=model.client)
    agent = Agent(name="calculator", instructions="Calculate with the tool.", model=policy, tools=[add])
    # Tracing needs network access, which the sandbox doesn't have.
    found = await Runner.run(
        agent, task["question"], max_turns=4, run_config=RunConfig(tracing_disabled=True)
    )
    return float(str(task["answer"]) in str(found.final_output))
