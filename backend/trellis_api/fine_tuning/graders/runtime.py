"""What graders compute. The text of this file stands at the head of every reward file that is made of a
grader, and runs in the sandbox: it imports nothing but the standard library.
"""

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_HOLE = re.compile(r"\{\{\s*([A-Za-z_][\w.\[\]]*)\s*\}\}")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MAX_ORDER = 4
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
    "pow": pow,
}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.Pow: lambda left, right: left**right,
}


def fill(template: str, names: Mapping[str, Any]) -> str:
    """Fill a template's placeholders (``{{ item.reference_answer }}``). Raises ``KeyError``."""
    return _HOLE.sub(lambda hole: as_text(look_up(hole.group(1), names)), template)


def find_holes(template: str) -> list[str]:
    """Return the names that a template looks up."""
    return _HOLE.findall(template)


def look_up(path: str, names: Mapping[str, Any]) -> Any:
    """Return the value at a path such as ``item.choices.0.text``."""
    value: Any = names
    for part in re.split(r"[.\[\]]+", path.rstrip("]")):
        try:
            value = value[int(part)] if isinstance(value, list | tuple) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise KeyError(f"there is no {path}") from None
    return value


def as_text(value: Any) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def check_string(operation: str, given: str, reference: str) -> float:
    """Return 1 or 0 for ``eq``, ``ne``, ``like`` (reference in the text) or ``ilike`` (ignoring case)."""
    if operation in ("eq", "ne"):
        return float((given == reference) is (operation == "eq"))
    if operation == "ilike":
        given, reference = given.casefold(), reference.casefold()
    return float(reference in given)


def measure_similarity(metric: str, given: str, reference: str) -> float:
    """Measure how similar two texts are, 0 to 1."""
    if metric == "fuzzy_match":
        return _ratio(given, reference)
    words, others = _split(given), _split(reference)
    if metric == "rouge_l":
        return _f1(_common(words, others), len(words), len(others))
    if metric.startswith("rouge_"):
        return _rouge(words, others, int(metric[-1]))
    return {"bleu": _bleu, "gleu": _gleu}[metric](words, others)


SIMILARITIES = ("fuzzy_match", "bleu", "gleu", *(f"rouge_{order}" for order in range(1, 6)), "rouge_l")


def parse_formula(text: str, names: Sequence[str]) -> ast.expr:
    """Parse a formula over the names of graders. Raises ``ValueError`` that says what is not allowed."""
    try:
        # "^" is a power here, as in the formulas of arithmetic.
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the formula cannot be read: {error}") from None
    for node in ast.walk(tree):
        _check_node(node, names)
    return tree


def _check_node(node: ast.AST, names: Sequence[str]) -> None:
    if isinstance(node, ast.Name):
        if node.id not in names and node.id not in _FUNCTIONS:
            raise ValueError(f"the formula names '{node.id}', which is no grader: {', '.join(names)}")
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ValueError(f"the formula has {node.value!r}, which is no number")
    elif isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
            raise ValueError(f"the formula may call {', '.join(_FUNCTIONS)}")
    elif not isinstance(
        node, ast.BinOp | ast.UnaryOp | ast.operator | ast.UAdd | ast.USub | ast.expr_context
    ):
        raise ValueError(f"the formula has a {type(node).__name__}, which is not supported")
    elif isinstance(node, ast.operator) and type(node) not in _OPERATORS:
        raise ValueError(f"the formula has the operator {type(node).__name__}, which is not supported")


def evaluate(tree: ast.expr, values: Mapping[str, float]) -> float:
    """Evaluate a formula that was checked."""
    match tree:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -evaluate(operand, values)
        case ast.UnaryOp(operand=operand):
            return evaluate(operand, values)
        case ast.BinOp(left=left, op=operator, right=right):
            return _OPERATORS[type(operator)](evaluate(left, values), evaluate(right, values))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return float(_FUNCTIONS[name](*(evaluate(each, values) for each in arguments)))
    raise ValueError(f"a formula has no {type(tree).__name__}")


def load_grade(source: str) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    """Load the function ``grade`` from a user's source."""
    names: dict[str, Any] = {"__name__": "grader"}
    exec(compile(source, "grader.py", "exec"), names)  # noqa: S102 - in the sandbox, which is made for it
    grade: Callable[[dict[str, Any], dict[str, Any]], Any] = names["grade"]
    return grade


def run_graders(
    graders: Mapping[str, Mapping[str, Any]],
    grades: Mapping[str, Callable[[dict[str, Any], dict[str, Any]], Any]],
    response: str,
    item: dict[str, Any],
) -> dict[str, float]:
    """Return each grader's score of a response, by name."""
    sample = describe_sample(response)
    values = {}
    for name, grader in graders.items():
        if grader["type"] == "python":
            values[name] = float(grades[name](sample, item))
            continue
        known = {"sample": sample, "item": item}
        given, reference = fill(grader["input"], known), fill(grader["reference"], known)
        if grader["type"] == "string_check":
            values[name] = check_string(grader["operation"], given, reference)
        else:
            values[name] = measure_similarity(grader["evaluation_metric"], given, reference)
    return values


def describe_sample(response: str) -> dict[str, Any]:
    """Describe a response as graders see it, with ``output_json`` if it is JSON."""
    try:
        parsed = json.loads(response)
    except (ValueError, RecursionError):
        parsed = None
    message = {"role": "assistant", "content": response}
    return {
        "output_text": response,
        "output_json": parsed,
        "output_tools": [],
        "choices": [{"message": message}],
    }


def _split(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + order]) for at in range(len(words) - order + 1))


def _f1(shared: float, first: int, second: int) -> float:
    return 2 * shared / (first + second) if first and second else float(first == second)


def _rouge(words: Sequence[str], others: Sequence[str], order: int) -> float:
    first, second = _grams(words, order), _grams(others, order)
    return _f1((first & second).total(), first.total(), second.total())


def _bleu(words: Sequence[str], others: Sequence[str]) -> float:
    """Compute sentence BLEU with exponential smoothing: an order without a match counts half the last."""
    if not words or not others:
        return float(words == others)
    logs, penalty, orders = 0.0, 1.0, min(_MAX_ORDER, len(words))
    for order in range(1, orders + 1):
        first = _grams(words, order)
        shared = (first & _grams(others, order)).total()
        if not shared:
            if order == 1:
                return 0.0
            penalty *= 2
        logs += math.log((shared or 1 / penalty) / first.total())
    brevity = min(0.0, 1 - len(others) / len(words))
    return math.exp(logs / orders + brevity)


def _gleu(words: Sequence[str], others: Sequence[str]) -> float:
    """Return the lesser of precision and recall over all n-grams up to four words."""
    orders = range(1, _MAX_ORDER + 1)
    pairs = [(_grams(words, order), _grams(others, order)) for order in orders]
    shared = sum((first & second).total() for first, second in pairs)
    most = max(sum(first.total() for first, _ in pairs), sum(second.total() for _, second in pairs))
    return shared / most if most else 1.0


def _ratio(first: str, second: str) -> float:
    """Return twice the longest common subsequence over both lengths (insertions and deletions only)."""
    return _f1(_common(first, second), len(first), len(second))


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, computed one row of bits at a time (Hyyrö)."""
    places: dict[str, int] = {}
    for at, each in enumerate(first):
        places[each] = places.get(each, 0) | 1 << at
    row = all_bits = (1 << len(first)) - 1
    for each in second:
        found = row & places.get(each, 0)
        row = ((row + found) | (row - found)) & all_bits
    return len(first) - row.bit_count()
