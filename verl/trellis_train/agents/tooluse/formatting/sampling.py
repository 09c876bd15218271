"""How many rows of each task: weights become whole numbers, and what one task lacks the others give."""

import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeVar, cast, get_args

TaskType = Literal["tool_selection", "multi_step_planning", "timing_decision", "tool_retrieval"]
TASK_TYPES: tuple[TaskType, ...] = get_args(TaskType)
DEFAULT_TASK_WEIGHTS: dict[TaskType, float] = {
    "tool_selection": 0.35,
    "multi_step_planning": 0.30,
    "timing_decision": 0.20,
    "tool_retrieval": 0.15,
}
_Row = TypeVar("_Row")


class BadWeights(ValueError):
    """Weights that no sample can be drawn by; says why."""


def apportion(weights: Mapping[str, float], count: int) -> dict[str, int]:
    """Split ``count`` into whole numbers in proportion to the weights, by the largest remainders.

    Equal remainders go to the name that comes first in the alphabet: the order of the mapping plays no part.

    >>> apportion({"a": 1, "b": 1, "c": 1}, 4)
    {'a': 2, 'b': 1, 'c': 1}
    """
    # Fractions of the decimals as they are written: .35 x 1000 is 350, not a little less.
    exact = {name: Fraction(str(weight)) for name, weight in weights.items()}
    total = sum(exact.values())
    if not exact or total <= 0:
        return dict.fromkeys(weights, 0)
    shares = {name: weight * count / total for name, weight in exact.items()}
    whole = {name: int(share) for name, share in shares.items()}
    rest = count - sum(whole.values())
    for name in sorted(shares, key=lambda name: (whole[name] - shares[name], name))[:rest]:
        whole[name] += 1
    return whole


def quotas(
    weights: Mapping[TaskType, float], available: Mapping[TaskType, int], count: int
) -> dict[TaskType, int]:
    """Return how many rows to take of each task, ``count`` in all or every row that has a weight.

    A task with fewer rows than its quota gives all of them; the deficit is spread over the others by their
    weights, again by the largest remainders, until nothing is left to spread or to take.
    Raises ``BadWeights``.
    """
    check_weights(weights)
    if count < 0:
        raise BadWeights(f"cannot sample {count} rows")
    taken = dict.fromkeys(weights, 0)
    left = count
    while left > 0:
        open_to = {
            name: weight
            for name, weight in weights.items()
            if weight > 0 and taken[name] < available.get(name, 0)
        }
        if not open_to:
            break
        for name, wanted in apportion(cast("Mapping[str, float]", open_to), left).items():
            task = cast("TaskType", name)
            given = min(wanted, available.get(task, 0) - taken[task])
            taken[task] += given
            left -= given
    return taken


def largest_exact_count(weights: Mapping[TaskType, float], available: Mapping[TaskType, int]) -> int:
    """Return the largest row count for which no task is short of its quota."""
    check_weights(weights)
    high = sum(available.get(name, 0) for name, weight in weights.items() if weight > 0)
    low = 0
    # Quotas of the largest remainders are not monotonic by a row or so: the bound is looked for, then neared.
    total = sum(Fraction(str(weight)) for weight in weights.values())
    bounds = [
        Fraction(available.get(name, 0) + 1) * total / Fraction(str(weight))
        for name, weight in weights.items()
        if weight > 0
    ]
    high = min(high, int(min(bounds)) + 1)
    for count in range(high, low, -1):
        wanted = apportion(cast("Mapping[str, float]", weights), count)
        if all(wanted[name] <= available.get(name, 0) for name in weights):
            return count
    return 0


def sample_by_weights(
    rows: Sequence[_Row],
    weights: Mapping[TaskType, float],
    *,
    count: int,
    seed: int,
    type_of: Callable[[_Row], TaskType] = lambda row: cast("Any", row)["task_type"],
) -> list[_Row]:
    """Sample ``count`` different rows, mixed by the weights, in an order drawn by the seed.

    Raises ``BadWeights``.
    """
    by_type: dict[TaskType, list[int]] = {name: [] for name in weights}
    for place, row in enumerate(rows):
        found = type_of(row)
        if found in by_type:
            by_type[found].append(place)
    wanted = quotas(weights, {name: len(places) for name, places in by_type.items()}, count)
    draw = random.Random(f"{seed}:task-weights")  # noqa: S311 - no secret
    chosen: list[int] = []
    for name in sorted(by_type):
        chosen += draw.sample(by_type[name], wanted[name])
    draw.shuffle(chosen)
    return [rows[place] for place in chosen]


def check_weights(weights: Mapping[TaskType, float]) -> None:
    """Raise ``BadWeights`` for what are no weights of tasks."""
    for name, weight in weights.items():
        if name not in TASK_TYPES:
            raise BadWeights(f"unknown task {name!r}; choose from {', '.join(TASK_TYPES)}")
        if not 0 <= weight < float("inf"):
            raise BadWeights(f"the weight of {name} is {weight}; weights must be 0 or more")
    if not sum(weights.values()) > 0:
        raise BadWeights("at least one task needs a weight above 0")
