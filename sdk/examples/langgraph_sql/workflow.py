"""A LangGraph agent with its own tool and database, as a package.

langgraph_sql/
    workflow.py
    shop.py             the tool
    shop.db             the database: CREATE TABLE stock (item TEXT PRIMARY KEY, count INTEGER)
    requirements.txt    packages installed in the sandbox
"""

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from shop import count_items
from trellis import TunableChatModel


async def workflow(task: dict[str, Any], model: TunableChatModel) -> float:
    """Return 1 if the answer is correct, plus 0.2 if the agent queried the database."""
    completions = model.client.chat.completions
    policy = ChatOpenAI(model="policy", api_key="none", client=completions, async_client=completions)
    graph = create_react_agent(policy, [count_items])
    found = await graph.ainvoke({"messages": [("user", task["question"])]}, {"recursion_limit": 6})
    messages = found["messages"]
    has_looked = any(message.type == "tool" for message in messages)
    return float(str(task["answer"]) in str(messages[-1].content)) + 0.2 * has_looked
