"""Turns a grader into a mixture of rewards: a file for what is computed, a judge for what is asked.

The reward file is Python that anybody can read, try in a dry run and use elsewhere. A judge is no code and
has no place in the sandbox, so a formula that weighs one must be a weighted sum.
"""

import ast
import itertools
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trellis_recipes.reward_parts import MAX_PARTS
from trellis_recipes.syntax import parse_python

from trellis_api.core.settings import Settings
from trellis_api.fine_tuning.errors import GraderUnsupported
from trellis_api.fine_tuning.graders import runtime
from trellis_api.fine_tuning.graders.judges import build_judge
from trellis_api.fine_tuning.graders.schemas import (
    Multi,
    PythonGrader,
    ScoreModel,
    Single,
    StringCheck,
    TextSimilarity,
)

PARAM = "method.reinforcement.grader"
_ROOTS = ("item", "sample")
#: Parts of a formula: many times what the graders that are allowed need.
_MOST_NODES = 400
#: Names that a reward file may report beside the score (``trellis_recipes.reward_parts``).
_PART = re.compile(r"[a-z][a-z0-9_]{0,31}")


@dataclass(frozen=True)
class Rewards:
    """What a grader comes to."""

    #: Of a reward file that is to be kept; None where a judge alone decides.
    code: str | None
    #: Terms of the mixture; that of the reward file is to be put before them.
    judges: list[dict[str, Any]] = field(default_factory=list)


def build_rewards(grader: Single | Multi, settings: Settings) -> Rewards:
    """Build the rewards of a grader. Raises ``GraderUnsupported``, which names the part."""
    if not isinstance(grader, Multi):
        return _build({"score": grader}, "score", settings, {"score": PARAM})
    places = {name: f"{PARAM}.graders.{name}" for name in grader.graders}
    return _build(grader.graders, grader.calculate_output, settings, places)


def _build(graders: dict[str, Single], formula: str, settings: Settings, places: dict[str, str]) -> Rewards:
    try:
        tree = runtime.parse_formula(formula, list(graders))
        _check_size(tree)
    except (ValueError, RecursionError, OverflowError) as error:
        raise _refuse(f"{PARAM}.calculate_output", f"{error}") from None
    for name, grader in graders.items():
        _check(grader, places[name])
    asked = {name: each for name, each in graders.items() if isinstance(each, ScoreModel)}
    computed = {name: each for name, each in graders.items() if name not in asked}
    if not asked:
        return Rewards(_write(computed, ast.unparse(tree)))
    if len(asked) > 1:
        raise _refuse(PARAM, "one 'score_model' is supported in a grader, not several")
    ((name, judge),) = asked.items()
    weights = _find_weights(tree)
    term = build_judge(judge, settings, weight=weights.get(name, 0.0), place=places[name])
    if not computed:
        return Rewards(None, [term])
    rest = " + ".join(f"({weight!r}) * {each}" for each, weight in weights.items() if each in computed)
    return Rewards(_write(computed, rest or "0"), [term])


def _check_size(tree: ast.expr) -> None:
    """Raise ``ValueError`` for a formula that nobody would write: very long, or with numbers out of range."""
    nodes = list(itertools.islice(ast.walk(tree), _MOST_NODES + 1))
    if len(nodes) > _MOST_NODES:
        raise ValueError("the formula is too long")
    numbers = (node.value for node in nodes if isinstance(node, ast.Constant))
    if not all(math.isfinite(float(number)) for number in numbers if isinstance(number, int | float)):
        raise ValueError("the formula has a number that is not finite")


def _check(grader: Single, place: str) -> None:
    match grader:
        case StringCheck() | TextSimilarity():
            _check_holes(grader.input, f"{place}.input")
            _check_holes(grader.reference, f"{place}.reference")
            if isinstance(grader, TextSimilarity) and grader.evaluation_metric not in runtime.SIMILARITIES:
                raise _refuse(
                    f"{place}.evaluation_metric",
                    f"the metric '{grader.evaluation_metric}' is not supported; there are "
                    f"{', '.join(runtime.SIMILARITIES)}",
                )
        case PythonGrader():
            if grader.image_tag is not None:
                raise _refuse(
                    f"{place}.image_tag", "'image_tag' is not supported: the platform has one sandbox"
                )
            _check_source(grader.source, f"{place}.source")


def _check_holes(template: str, place: str) -> None:
    for hole in runtime.find_holes(template):
        if hole.partition(".")[0] not in _ROOTS:
            raise _refuse(place, f"'{{{{{hole}}}}}' is neither of item nor of sample")
    if "{{" in re.sub(r"\{\{\s*[A-Za-z_][\w.\[\]]*\s*\}\}", "", template):
        raise _refuse(place, "has '{{' that no '}}' with a name between closes")


def _check_source(source: str, place: str) -> None:
    """Look without running: it runs in the sandbox alone."""
    try:
        tree = parse_python(source)
    except SyntaxError as error:
        raise _refuse(place, f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _refuse(place, f"cannot be parsed: {error or type(error).__name__}") from None
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "grade"]
    if not found:
        raise _refuse(place, "has no function grade(sample, item)")
    arguments = found[-1].args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    if positional - len(arguments.defaults) > 2 or (positional < 2 and arguments.vararg is None):
        raise _refuse(place, f"line {found[-1].lineno}: grade is called as grade(sample, item)")


def _find_weights(tree: ast.expr) -> dict[str, float]:
    """Return the weights of a weighted sum; a constant is dropped, as it does not change what is learned."""
    try:
        found = _sum_of(tree)
        if not all(map(math.isfinite, found.values())):
            raise ValueError
    except (ValueError, OverflowError):
        raise _refuse(
            f"{PARAM}.calculate_output",
            "with a 'score_model' the formula must be a weighted sum of the graders, such as "
            "0.7 * quality + 0.3 * format",
        ) from None
    found.pop("", None)
    return found


def _sum_of(tree: ast.expr) -> dict[str, float]:
    """Map each name to its factor, and "" to the constant. Raises ``ValueError`` for what is no sum."""
    match tree:
        case ast.Constant(value=int() | float() as number):
            return {"": float(number)}
        case ast.Name(id=name):
            return {name: 1.0}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {name: -factor for name, factor in _sum_of(operand).items()}
        case ast.UnaryOp(operand=operand):
            return _sum_of(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            sign = 1.0 if isinstance(operator, ast.Add) else -1.0
            total = _sum_of(left)
            for name, factor in _sum_of(right).items():
                total[name] = total.get(name, 0.0) + sign * factor
            return total
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            first, second = _sum_of(left), _sum_of(right)
            sums, scale = (second, first) if set(first) == {""} else (first, second)
            if set(scale) != {""}:
                raise ValueError
            return {name: each * scale[""] for name, each in sums.items()}
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            divisor = _sum_of(right)
            if set(divisor) != {""} or not divisor[""]:
                raise ValueError
            return {name: each / divisor[""] for name, each in _sum_of(left).items()}
    raise ValueError


def _write(graders: dict[str, Single], formula: str) -> str:
    """Write the reward file: the graders' runtime code, then these graders and their formula."""
    described = {name: each.model_dump(mode="json", exclude_none=True) for name, each in graders.items()}
    is_told = 1 < len(graders) <= MAX_PARTS and all(map(_may_be_told, graders))
    parts = f"PARTS = {sorted(graders)!r}\n" if is_told else ""
    value = '{"score": value, **values}' if is_told else "value"
    return (
        f"{Path(runtime.__file__).read_text()}\n\n"
        f"# What was asked for.\n"
        f"GRADERS = json.loads({json.dumps(described)!r})\n"
        f"FORMULA = parse_formula({formula!r}, list(GRADERS))\n"
        f"{parts}"
        "GRADES = {name: load_grade(each['source']) for name, each in GRADERS.items() if 'source' in each}\n"
        "\n\n"
        "def score(prompt, response, answer, row):\n"
        '    """What the grader gives to a response; rows keep their own fields as JSON."""\n'
        "    item = json.loads(row['item']) if isinstance(row.get('item'), str) else {**row}\n"
        "    item.setdefault('reference_answer', answer)\n"
        "    values = run_graders(GRADERS, GRADES, response, item)\n"
        "    value = evaluate(FORMULA, values)\n"
        f"    return {value}\n"
    )


def _may_be_told(name: str) -> bool:
    return name != "score" and _PART.fullmatch(name) is not None


def _refuse(param: str, problem: str) -> GraderUnsupported:
    return GraderUnsupported(f"{param}: {problem}.", {"param": param})
