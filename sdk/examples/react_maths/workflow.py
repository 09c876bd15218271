"""A ReAct agent (Yao et al., arXiv 2210.03629) for word problems: it thinks, calculates and finishes.

Reward: 1.0 for the correct number, plus 0.1 for the requested format (``finish``, or \\boxed{...}).
"""

import ast
import operator
import re
from typing import Any, Dict  # noqa: UP035 - both spellings work

from trellis import ContextExceeded, TunableChatModel, WorkflowOutput

MAX_TURNS = 4
SYSTEM = (
    "Solve the problem. Calculate with the tool, then call finish, or write the answer as \\boxed{number}."
)
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def _tool(name: str, description: str, argument: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = [
    _tool("calculate", "Calculates an arithmetic expression.", "expression"),
    _tool("finish", "Gives the answer.", "answer"),
]


def calculate(expression: str) -> str:
    """Evaluate an expression of numbers, + - * / and parentheses; return an error if it is invalid."""

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return float(_OPERATORS[type(node.op)](value(node.left), value(node.right)))
        raise ValueError("only numbers, + - * / and brackets")

    try:
        return f"{value(ast.parse(expression, mode='eval').body):g}"
    except (ValueError, SyntaxError, ArithmeticError, RecursionError) as error:
        return f"error: {error}"


def read_boxed(text: str) -> str | None:
    """Return the content of the last \\boxed{...}."""
    found = re.findall(r"\\boxed\{([^{}]*)\}", text)
    return found[-1] if found else None


def read_number(text: str | None) -> float | None:
    """Return the last number in a text."""
    found = re.findall(r"-?\d+(?:\.\d+)?", (text or "").replace(",", ""))
    return float(found[-1]) if found else None


async def workflow(task: Dict[str, Any], model: TunableChatModel) -> WorkflowOutput:  # noqa: UP006
    """Think, act and observe until there is an answer."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": task["question"]},
    ]
    answer, calls = None, 0
    for _ in range(MAX_TURNS):
        try:
            reply = await model(messages, TOOLS)
        except ContextExceeded:
            break
        messages.append(reply.message)
        for call in reply.tool_calls:
            calls += 1
            if call.name == "finish":
                answer = str(call.arguments.get("answer", ""))
                break
            result = calculate(str(call.arguments.get("expression", "")))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        answer = answer or read_boxed(reply.text)
        if answer is not None or not reply.tool_calls:
            break
    is_right = answer is not None and read_number(answer) == read_number(str(task["answer"]))
    reward = (1.0 if is_right else 0.0) + (0.1 if answer is not None else 0.0)
    return WorkflowOutput(reward=reward, response=answer, metrics={"calls": calls, "right": float(is_right)})
