"""How far the arguments of calls are those of the reference, each from 0 to 1."""

from collections.abc import Mapping, Sequence
from typing import Any

from trellis_train.agents.argument_check import find_argument_fault
from trellis_train.agents.tooluse.scoring.response import Call
from trellis_train.agents.tooluse.scoring.truth import GroundTruth
from trellis_train.rewards.answers import squeeze

#: What an argument of the right name counts whose value is another.
OTHER_VALUE = 0.25
#: What remains of arguments that do not fit the tool's schema.
NOT_OF_SCHEMA = 0.5
#: Tools by name, as a row lists them; those without ``parameters`` have no schema to fit.
Schemas = Mapping[str, Mapping[str, Any]]


def match_tools(calls: Sequence[Call], truth: GroundTruth, tools: Schemas) -> dict[str, float]:
    """Measure how far each tool of the reference is called with the arguments of its steps.

    A step that no call is made for counts 0. Of a tool no more calls are looked at than it has steps, the
    first ones: trying one value after another must not pay. ``calls`` are without duplicates.
    """
    found = {}
    for name in truth.tools:
        wanted = [step.arguments for step in truth.steps if step.name == name]
        made = [call.arguments for call in calls if call.name == name][: len(wanted)]
        schema = tools.get(name, {}).get("parameters")
        table = [[match_arguments(each, step, schema) for step in wanted] for each in made]
        found[name] = _pair_up(table) / len(wanted)
    return found


def match_arguments(
    made: Mapping[str, Any], wanted: Mapping[str, Any] | None, schema: Mapping[str, Any] | None = None
) -> float:
    """Average over all arguments of either side: 1 if equal, .25 if different, 0 if one side lacks it.

    Half of it where the arguments do not fit the schema. A reference that says nothing of its arguments
    (``wanted`` is None) accepts any.

    >>> match_arguments({"to": "oslo "}, {"to": "Oslo"}), match_arguments({"to": "Paris"}, {"to": "Oslo"})
    (1.0, 0.25)
    >>> match_arguments({"nonsense": 1}, {"to": "Oslo"}), match_arguments({}, {})
    (0.0, 1.0)
    """
    fits = not isinstance(schema, Mapping) or find_argument_fault(schema, made) is None
    return _compare(made, wanted) * (1.0 if fits else NOT_OF_SCHEMA)


def find_other_arguments(
    made: Mapping[str, Any], wanted: Mapping[str, Any] | None, schema: Mapping[str, Any] | None = None
) -> list[str]:
    """Find the arguments that differ, are missing or are unnecessary: those of the reference first.

    Where all are equal but the schema refuses them, what it says.
    """
    names = [] if wanted is None else list(dict.fromkeys([*wanted, *made]))
    other = [name for name in names if name not in made or name not in (wanted or {})]
    other += [name for name in names if name not in other and not is_equal(made[name], (wanted or {})[name])]
    if other or not isinstance(schema, Mapping):
        return sorted(other, key=names.index)
    fault = find_argument_fault(schema, made)
    return [] if fault is None else [fault]


def is_equal(made: Any, wanted: Any) -> bool:
    """Tell whether two values mean the same: case and white space of texts aside, and 5 is 5.0 and "5".

    >>> is_equal(" new  york", "New York"), is_equal("5", 5.0), is_equal([1], [1.0]), is_equal(True, 1)
    (True, True, True, False)
    """
    if isinstance(made, bool) or isinstance(wanted, bool):
        return made is wanted
    if isinstance(made, str) and isinstance(wanted, str):
        return squeeze(made).casefold() == squeeze(wanted).casefold()
    if isinstance(made, str) or isinstance(wanted, str):
        return _number(made) is not None and _number(made) == _number(wanted)
    if isinstance(made, Mapping) and isinstance(wanted, Mapping):
        return made.keys() == wanted.keys() and all(is_equal(made[name], wanted[name]) for name in made)
    if isinstance(made, list) and isinstance(wanted, list):
        return len(made) == len(wanted) and all(map(is_equal, made, wanted))
    return bool(made == wanted)


def _compare(made: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> float:
    names = set(made) | set(wanted or {})
    if wanted is None or not names:
        return 1.0
    same = [is_equal(made[name], wanted[name]) for name in names if name in made and name in wanted]
    return sum(1.0 if each else OTHER_VALUE for each in same) / len(names)


def _number(value: Any) -> int | float | None:
    """Return a number, or a numeric text as a float; None for anything else."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) else None


def _pair_up(table: list[list[float]]) -> float:
    """Return the sum of a greedy matching of rows and columns, best pair first."""
    rows, columns, total = set(range(len(table))), set(range(len(table[0]) if table else 0)), 0.0
    while rows and columns:
        value, row, column = max((table[row][column], -row, -column) for row in rows for column in columns)
        total += value
        rows.remove(-row)
        columns.remove(-column)
    return total
