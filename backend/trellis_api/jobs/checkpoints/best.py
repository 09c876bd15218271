"""Which checkpoint is the best: by which metric, and whether more of it is better."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trellis_recipes.headline_metrics import VALIDATION_PREFIX, match_reported

from trellis_api.jobs.metrics.direction import Mode, is_validation, list_headline, suit_mode
from trellis_api.jobs.models import Job


@dataclass(frozen=True)
class Criterion:
    """A metric, and which of its ends is the good one."""

    metric: str
    mode: Mode


def choose_criterion(
    job: Job, *, reported: Iterable[str], metric: str | None = None, mode: Mode | None = None
) -> Criterion | None:
    """Choose the requested metric, else the job's own choice, else the recipe's; None without any of them.

    Of the recipe: its first validation metric that was reported, any other summary of the validation,
    and without validation the first headline metric.
    """
    known = set(reported)
    if metric is not None:
        return Criterion(match_reported(metric, known), mode or suit_mode(metric))
    if job.keep_best_by:
        chosen = str(job.keep_best_by["metric"])
        preferred = mode or job.keep_best_by.get("mode") or suit_mode(chosen)
        return Criterion(match_reported(chosen, known), preferred)
    headline = list_headline(job.recipe)
    validation = [key for key in headline if is_validation(key)]
    others = sorted(key for key in known if key.startswith(VALIDATION_PREFIX))
    found = next((key for key in (*validation, *others, *headline) if key in known), None)
    return Criterion(found, mode or suit_mode(found)) if found else None


def find_best(
    metrics_by_step: Mapping[int, Mapping[str, float | None]], criterion: Criterion | None
) -> int | None:
    """Return the step with the best finite value; of equal ones the first."""
    if criterion is None:
        return None
    sign = 1 if criterion.mode == "max" else -1
    best: tuple[float, int] | None = None
    for step in sorted(metrics_by_step):
        value = metrics_by_step[step].get(criterion.metric)
        if value is None or not math.isfinite(value):
            continue
        if best is None or sign * value > best[0]:
            best = (sign * value, step)
    return best[1] if best else None
