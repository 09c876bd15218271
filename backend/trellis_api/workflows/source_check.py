"""Looks at a person's workflow file without running it."""

import ast

#: ``async def workflow(task, model)``; where it gives no reward itself, ``async def judge(task, response)``.
WORKFLOW, JUDGE = "workflow", "judge"
PARAMETERS = {WORKFLOW: ("task", "model"), JUDGE: ("task", "response")}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class NoWorkflow(ValueError):
    """The file cannot be a workflow; the message says why."""


def find_function(code: str, wanted: str | None = None) -> str:
    """The workflow's name: ``wanted``, else ``workflow``, else the only async function; ``NoWorkflow``."""
    functions = _list_functions(code)
    if JUDGE in functions:
        _check_signature(functions[JUDGE], PARAMETERS[JUDGE])
    candidates = [
        name for name, node in functions.items() if isinstance(node, ast.AsyncFunctionDef) and name != JUDGE
    ]
    name = wanted or (WORKFLOW if WORKFLOW in functions else None)
    if name is None:
        if len(candidates) != 1:
            raise NoWorkflow(
                f"The file has {len(candidates)} async functions; it needs async def workflow(task, model)."
            )
        (name,) = candidates
    if name not in functions:
        raise NoWorkflow(f"The file has no function {name}(task, model).")
    _check_signature(functions[name], PARAMETERS[WORKFLOW])
    return name


def _list_functions(code: str) -> dict[str, Function]:
    """The file's functions by name; of several with one name the last counts, as in Python."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise NoWorkflow(f"Line {error.lineno}: {error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise NoWorkflow(f"The file cannot be parsed: {error or type(error).__name__}.") from None
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _check_signature(function: Function, expected: tuple[str, ...]) -> None:
    wanted = f"async def {function.name}({', '.join(expected)})"
    given = function.args
    names = tuple(argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs))
    if not isinstance(function, ast.AsyncFunctionDef):
        raise NoWorkflow(f"Line {function.lineno}: {function.name} must be async: {wanted}.")
    if names != expected or given.vararg is not None or given.kwarg is not None:
        raise NoWorkflow(f"Line {function.lineno}: the function must be {wanted}, with these names in order.")
