"""Arithmetic as a tool: numbers, ``+ - * / // % **`` and brackets, and nothing else of Python."""

import ast
import operator
from collections.abc import Callable
from typing import Any

MAX_CHARACTERS = 200
_MAX_DIGITS = 30
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


class BadExpression(ValueError):
    """The expression cannot be calculated; the message is for the model."""


def calculate(expression: str) -> str:
    """Evaluate an expression; return text, integers without decimal point. Raises ``BadExpression``.

    >>> calculate("(3 + 4) * 2 / 7")
    '2'
    """
    if len(expression) > MAX_CHARACTERS:
        raise BadExpression(f"the expression is longer than {MAX_CHARACTERS} characters")
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError:
        raise BadExpression("not an arithmetic expression") from None
    except (ZeroDivisionError, OverflowError, RecursionError, MemoryError, ValueError) as error:
        raise BadExpression(str(error) or type(error).__name__) from None
    return str(int(value)) if float(value).is_integer() else f"{value:.10g}"


def _value(node: ast.expr) -> int | float:
    found: int | float
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        found = node.value
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and (abs(right) > _MAX_DIGITS or abs(left) > 10**6):
            raise BadExpression("the power is too large")
        found = _BINARY[type(node.op)](left, right)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        found = _UNARY[type(node.op)](_value(node.operand))
    else:
        raise BadExpression("only numbers, + - * / // % ** and parentheses are allowed")
    if isinstance(found, complex) or abs(found) > 10**_MAX_DIGITS:
        raise BadExpression("the value is too large")
    return found
