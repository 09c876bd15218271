"""AgentScope's ReAct agent with a calculator tool, as a package that requires AgentScope 1.

agentscope/
    workflow.py
    requirements.txt    packages installed in the sandbox
"""

from typing import Any

from agentscope.agent import ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg, TextBlock
from agentscope.model import OpenAIChatModel
from agentscope.tool import Toolkit, ToolResponse
from trellis import TunableChatModel


async def add(a: float, b: float) -> ToolResponse:
    """Add two numbers.

    Args:
        a (float): The first number.
        b (float): The second number.
    """
    return ToolResponse([TextBlock(type="text", text=f"{a + b:g}")])


async def workflow(task: dict[str, Any], model: TunableChatModel) -> float:
    """Return 1 if the agent's final message contains the answer."""
    policy = OpenAIChatModel("policy", api_key="none", stream=False)
    policy.client = model.client
    toolkit = Toolkit()
    toolkit.register_tool_function(add)
    agent = ReActAgent(
        name="calculator",
        sys_prompt="Calculate with the tool.",
        model=policy,
        formatter=OpenAIChatFormatter(),
        toolkit=toolkit,
        max_iters=4,
    )
    # Otherwise the agent prints its messages.
    agent.set_console_output_enabled(False)
    found = await agent(Msg("user", task["question"], "user"))
    return float(str(task["answer"]) in (found.get_text_content() or ""))
