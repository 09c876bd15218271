"""Which runs are stopped early: asynchronous successive halving, or the median rule.

Li et al., "A System for Massively Parallel Hyperparameter Tuning" (2020), and Golovin et al., "Google Vizier"
(2017). Both look at fixed steps (rungs) at what was measured in the database, once per run and rung; what a
run had there is kept with it, so that neither a restart nor a deleted job changes a decision.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trellis_api.sweeps.schemas import StopRule


@dataclass(frozen=True)
class Rung:
    """What a run had at a step: the value first measured there, the mean and the best up to it."""

    step: int
    value: float
    mean: float
    best: float


def list_rungs(rule: StopRule, *, last_step: int) -> list[int]:
    """List the steps at which runs are compared, up to ``last_step``."""
    if rule.rule == "median":
        return list(range(rule.min_steps, last_step + 1, rule.min_steps))
    found, step = [], rule.min_steps
    while step <= last_step:
        found.append(step)
        step *= rule.factor
    return found


def read_rung(points: Sequence[tuple[int, float]], step: int, *, is_less_better: bool) -> Rung | None:
    """Return a run's best value at a rung; None before it was measured there.

    ``points`` are sorted by step.
    """
    upto = []
    for at, value in points:
        if not math.isfinite(value):
            value = math.inf if is_less_better else -math.inf
        upto.append(value)
        if at >= step:
            best = min(upto) if is_less_better else max(upto)
            return Rung(step, value, sum(upto) / len(upto), best)
    return None


def is_worse(rule: StopRule, own: Rung, others: Iterable[Rung], *, is_less_better: bool) -> bool:
    """Tell whether a run is to be stopped at a rung, given the others' records at the same one."""
    sign = -1.0 if is_less_better else 1.0
    records = list(others)
    if len(records) + 1 < rule.min_runs:
        return False
    if rule.rule == "asha":
        better = sum(sign * each.value > sign * own.value for each in records)
        return better >= max(1, math.floor((len(records) + 1) / rule.factor))
    means = sorted(sign * each.mean for each in records)
    middle = len(means) // 2
    median = means[middle] if len(means) % 2 else (means[middle - 1] + means[middle]) / 2
    return sign * own.best < median
