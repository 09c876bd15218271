"""How much of the difference between runs each parameter accounts for, by ranks and without a model.

Runs are ranked by the objective and grouped by the parameter's value, a number with more than five values by
thirds: so an optimum in the middle is seen, which a correlation would miss. Epsilon squared (Kelley, 1935) of
the Kruskal-Wallis statistic corrects for what few runs show by chance; a permutation test says how often.
"""

import random
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from trellis_api.sweeps.schemas import Importance, ParameterImportance

MIN_RUNS = 6
_MAX_GROUPS = 5
_PERMUTATIONS = 199


def measure(runs: Sequence[tuple[Mapping[str, Any], float]], names: Sequence[str]) -> Importance:
    """Measure importance from the values and objectives of finished runs, most important parameter first."""
    found: list[ParameterImportance] = []
    if len(runs) >= MIN_RUNS:
        ranks = rank([value for _, value in runs])
        for name in names:
            column = [values.get(name) for values, _ in runs]
            groups = group(column)
            if len(set(groups)) > 1:
                found.append(_measure_one(name, column, groups, ranks))
    found.sort(key=lambda each: -each.importance)
    return Importance(method="rank_variance", run_count=len(runs), min_runs=MIN_RUNS, parameters=found)


def _measure_one(
    name: str, column: list[Any], groups: list[Hashable], ranks: list[float]
) -> ParameterImportance:
    found = epsilon_squared(groups, ranks)
    shuffled, source = list(ranks), random.Random(name)  # noqa: S311 (no secret)
    as_large = 0
    for _ in range(_PERMUTATIONS):
        source.shuffle(shuffled)
        as_large += epsilon_squared(groups, shuffled) >= found
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in column)
    return ParameterImportance(
        parameter=name,
        importance=round(max(0.0, found), 4),
        p_value=round((as_large + 1) / (_PERMUTATIONS + 1), 4),
        correlation=round(correlate(rank(column), ranks), 4) if is_number else None,
    )


def rank(values: Sequence[float]) -> list[float]:
    """Rank the values from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start
        while stop + 1 < len(order) and values[order[stop + 1]] == values[order[start]]:
            stop += 1
        for place in order[start : stop + 1]:
            ranks[place] = (start + stop) / 2 + 1
        start = stop + 1
    return ranks


def group(column: Sequence[Any]) -> list[Hashable]:
    """Return the group of each run: its value, or for many numbers the third of the runs that it ranks in."""
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in column)
    if not is_number or len(set(column)) <= _MAX_GROUPS:
        return [repr(value) for value in column]
    return [min(2, int(3 * (place - 1) / len(column))) for place in rank(column)]


def epsilon_squared(groups: Sequence[Hashable], ranks: Sequence[float]) -> float:
    """Compute the share of rank variance between groups, less what chance would give."""
    count, mean = len(ranks), sum(ranks) / len(ranks)
    total = sum((each - mean) ** 2 for each in ranks)
    members: dict[Hashable, list[float]] = {}
    for name, each in zip(groups, ranks, strict=True):
        members.setdefault(name, []).append(each)
    if total == 0 or not 1 < len(members) < count:
        return 0.0
    between = sum(len(own) * (sum(own) / len(own) - mean) ** 2 for own in members.values())
    within = (total - between) / (count - len(members))
    return (between - (len(members) - 1) * within) / total


def correlate(left: Sequence[float], right: Sequence[float]) -> float:
    """Compute Pearson's correlation; of ranks that is Spearman's."""
    a, b = sum(left) / len(left), sum(right) / len(right)
    spread = (sum((x - a) ** 2 for x in left) * sum((y - b) ** 2 for y in right)) ** 0.5
    return sum((x - a) * (y - b) for x, y in zip(left, right, strict=True)) / spread if spread else 0.0
