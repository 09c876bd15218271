"""Looks at a person's workflow file without running it."""

import ast

from trellis_recipes.syntax import parse_python

#: ``async def workflow(task, model)``; where it gives no reward itself, ``async def judge(task, response)``.
WORKFLOW, JUDGE = "workflow", "judge"
PARAMETERS = {WORKFLOW: ("task", "model"), JUDGE: ("task", "response")}
#: The third parameter that both may have: models that are called and not trained.
AUXILIARY = "auxiliary_models"
Function = ast.FunctionDef | ast.AsyncFunctionDef


class NoWorkflow(ValueError):
    """The file cannot be a workflow; ``faults`` say why, each in a sentence."""

    def __init__(self, *faults: str) -> None:
        super().__init__(" ".join(faults))
        self.faults = faults


def find_function(code: str, wanted: str | None = None) -> str:
    """Find the workflow's name: ``wanted``, else ``workflow``, else the only async function.

    Raises ``NoWorkflow``.
    """
    functions = _list_functions(code)
    faults = _find_faults(functions[JUDGE], PARAMETERS[JUDGE]) if JUDGE in functions else []
    try:
        name = _choose(functions, wanted)
    except NoWorkflow as error:
        raise NoWorkflow(*error.faults, *faults) from None
    faults = [*_find_faults(functions[name], PARAMETERS[WORKFLOW]), *faults]
    if faults:
        raise NoWorkflow(*faults)
    return name


def needs_auxiliary(code: str, function: str) -> bool:
    """Tell whether the workflow, or its judge, cannot be called without other models."""
    functions = _list_functions(code)
    found = [functions[name] for name in (function, JUDGE) if name in functions]
    for node in found:
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        required = names[: len(names) - len(node.args.defaults)]
        if AUXILIARY in required:
            return True
    return False


def _choose(functions: dict[str, Function], wanted: str | None) -> str:
    name = wanted or (WORKFLOW if WORKFLOW in functions else None)
    if name is None:
        candidates = [
            each
            for each, node in functions.items()
            if isinstance(node, ast.AsyncFunctionDef) and each != JUDGE
        ]
        if len(candidates) != 1:
            raise NoWorkflow(
                f"The file has {len(candidates)} async functions; it needs async def workflow(task, model)."
            )
        (name,) = candidates
    if name not in functions:
        raise NoWorkflow(f"The file has no function {name}(task, model).")
    return name


def _list_functions(code: str) -> dict[str, Function]:
    """Return the file's functions by name; of several with the same name the last wins, as in Python."""
    try:
        tree = parse_python(code)
    except SyntaxError as error:
        raise NoWorkflow(f"Line {error.lineno}: {error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise NoWorkflow(f"The file cannot be parsed: {error or type(error).__name__}.") from None
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _find_faults(function: Function, expected: tuple[str, ...]) -> list[str]:
    wanted = f"async def {function.name}({', '.join(expected)})"
    given = function.args
    names = tuple(argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs))
    faults = []
    if not isinstance(function, ast.AsyncFunctionDef):
        faults.append(f"Line {function.lineno}: {function.name} must be async: {wanted}.")
    if given.kwonlyargs:
        # Sessions hand both over by place.
        names_only = ", ".join(argument.arg for argument in given.kwonlyargs)
        faults.append(f"Line {function.lineno}: {names_only} may not be keyword-only: {wanted}.")
    if names not in (expected, (*expected, AUXILIARY)) or given.vararg is not None or given.kwarg is not None:
        faults.append(f"Line {function.lineno}: the function must be {wanted}, with these names in order.")
    return faults
