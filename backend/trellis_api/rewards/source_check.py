"""Looks at a person's Python file without running it."""

import ast

from trellis_recipes.reward_parts import BadParts, find_parts
from trellis_recipes.syntax import parse_python

#: ``score(prompt, response, answer, row)``.
FUNCTION = "score"
PARAMETERS = ("prompt", "response", "answer", "row")


def find_problem(code: str) -> str | None:
    """Find why the file can't be a reward, or None."""
    try:
        tree = parse_python(code)
    except SyntaxError as error:
        return f"Line {error.lineno}: {error.msg}."
    except (ValueError, RecursionError, MemoryError) as error:
        return f"The file cannot be parsed: {error or type(error).__name__}."
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == FUNCTION
    ]
    if not functions:
        return f"The file doesn't define {FUNCTION}({', '.join(PARAMETERS)})."
    problem = _find_signature_problem(functions[-1])
    if problem:
        return problem
    try:
        find_parts(tree)
    except BadParts as error:
        return str(error)
    return None


def _find_signature_problem(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    wanted = f"{FUNCTION}({', '.join(PARAMETERS)})"
    if isinstance(function, ast.AsyncFunctionDef):
        return f"Line {function.lineno}: {FUNCTION} must not be async."
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = len(positional) - len(arguments.defaults)
    has_room = arguments.vararg is not None or len(positional) >= len(PARAMETERS)
    required_names = [
        name.arg
        for name, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    if needed > len(PARAMETERS) or not has_room or required_names:
        return f"Line {function.lineno}: the function is called as {wanted}."
    return None
