"""Every operator by its id; importing this imports nothing heavy."""

from functools import cache
from importlib import import_module
from typing import Any

from trellis_contracts.parameter_schema import describe_model

from trellis_data.operator import Operator, OperatorProblem

#: Modules that define operators.
_MODULES: tuple[str, ...] = (
    "trellis_data.operators.normalise_text",
    "trellis_data.operators.control_characters",
    "trellis_data.operators.html",
    "trellis_data.operators.urls",
    "trellis_data.operators.empty_answers",
    "trellis_data.operators.length",
    "trellis_data.operators.language",
    "trellis_data.operators.repetition",
    "trellis_data.operators.personal_data",
    "trellis_data.operators.word_list",
    "trellis_data.operators.json_schema",
    "trellis_data.operators.decontaminate",
    "trellis_data.dedup.exact",
    "trellis_data.dedup.minhash",
    "trellis_data.dedup.simhash",
    "trellis_data.dedup.semantic",
    "trellis_data.scoring.judge",
    "trellis_data.scoring.quality",
    "trellis_data.scoring.difficulty",
    "trellis_data.scoring.filter_by_score",
    "trellis_data.formats.operator",
    "trellis_data.splitting.split",
)


@cache
def operators() -> dict[str, type[Operator]]:
    """List all operators, in the order in which a person would use them."""
    found: dict[str, type[Operator]] = {}
    for name in _MODULES:
        module = import_module(name)
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Operator) and "id" in vars(each):
                found[each.id] = each
    return found


def find_operator(operator_id: str) -> type[Operator]:
    """Return the operator of that id; raise ``OperatorProblem`` with the known ones if there is none."""
    try:
        return operators()[operator_id]
    except KeyError:
        known = ", ".join(operators())
        raise OperatorProblem(
            "operator_unknown", f"Unknown operator '{operator_id}'; available: {known}."
        ) from None


def describe(operator: type[Operator]) -> dict[str, Any]:
    """Describe an operator for forms and documents."""
    return {
        "id": operator.id,
        "group": operator.group,
        "title": operator.title.model_dump(),
        "help": operator.help.model_dump(),
        "params_schema": describe_model(operator.Params),
    }
