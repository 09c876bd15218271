"""A LangGraph agent with a calculator tool."""

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from trellis import TunableChatModel


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


async def workflow(task: dict[str, Any], model: TunableChatModel) -> float:
    """Return 1 if the last message contains the answer."""
    completions = model.client.chat.completions
    policy = ChatOpenAI(model="policy", api_key="none", client=completions, async_client=completions)
    graph = create_react_agent(policy, [add])
    found = await graph.ainvoke({"messages": [("user", task["question"])]}, {"recursion_limit": 8})
    return float(str(task["answer"]) in str(found["messages"][-1].content))
