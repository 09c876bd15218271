"""Which checkpoint is the best: by which metric, and whether more of it is better."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from trellis_recipes.catalogue import UnknownRecipe, get_recipe

from trellis_api.jobs.models import Job

Mode = Literal["max", "min"]

_VALIDATION = re.compile(r"^(?:val|valid|validation|eval|test)(?:[-_/]|$)")
_WORD = re.compile(r"[a-z]+")
#: Words in a metric's name that say: less is better.
_LESS_IS_BETTER = frozenset(
    [
        "loss",
        "perplexity",
        "ppl",
        "nll",
        "kl",
        "error",
        "err",
        "mse",
        "mae",
        "wer",
        "cer",
        "bpb",
        "surprise",
        "brier",
        "ece",
        "latency",
        "time",
        "timing",
        "memory",
        "diff",
        "toxicity",
    ]
)
#: Of these neither more nor less is better: a run with less entropy has explored less, or is surer; lengths,
#: norms of gradients, clipped shares and learning rates tell how a run goes and not how good it is.
_UNDIRECTED = frozenset(["entropy", "length", "lengths", "norm", "clip", "clipfrac", "lr", "epoch"])
_LEARNING_RATE = frozenset(["learning", "rate"])
#: Validation metrics that sum up a data source, by verl's naming.
_CORE = "val-core/"


@dataclass(frozen=True)
class Criterion:
    """A metric, and which of its ends is the good one."""

    metric: str
    mode: Mode


def is_validation(key: str) -> bool:
    """Tell by its name whether a metric was measured on validation data."""
    return _VALIDATION.match(key) is not None


def suit_mode(key: str) -> Mode:
    """Return ``min`` for losses and similar metrics, else ``max``."""
    return "min" if _LESS_IS_BETTER & _words_of(key) else "max"


def has_direction(key: str) -> bool:
    """Tell whether a higher or lower value of a metric is better; a cross entropy is a loss."""
    words = _words_of(key)
    return not _UNDIRECTED & words and not words >= _LEARNING_RATE


def find_direction(key: str, *, jobs: Iterable[Job]) -> Mode | None:
    """Return the direction that a job states for the metric, else that of its name; None without either."""
    for job in jobs:
        stated = job.keep_best_by or {}
        if stated.get("metric") == key and stated.get("mode"):
            return cast(Mode, stated["mode"])
    return suit_mode(key) if has_direction(key) else None


def _words_of(key: str) -> set[str]:
    words = set(_WORD.findall(key.lower()))
    return words - {"entropy"} | {"loss"} if {"cross", "entropy"} <= words else words


def choose_criterion(
    job: Job, *, reported: Iterable[str], metric: str | None = None, mode: Mode | None = None
) -> Criterion | None:
    """Choose the requested metric, else the job's own choice, else the recipe's; None without any of them.

    Of the recipe: its first validation metric that was reported, any other summary of the validation,
    and without validation the first headline metric.
    """
    if metric is not None:
        return Criterion(metric, mode or suit_mode(metric))
    if job.keep_best_by:
        chosen = str(job.keep_best_by["metric"])
        return Criterion(chosen, mode or job.keep_best_by.get("mode") or suit_mode(chosen))
    known = set(reported)
    headline = list_headline(job.recipe)
    validation = [key for key in headline if is_validation(key)]
    others = sorted(key for key in known if key.startswith(_CORE))
    found = next((key for key in (*validation, *others, *headline) if key in known), None)
    return Criterion(found, mode or suit_mode(found)) if found else None


def list_headline(recipe: str) -> Sequence[str]:
    """Return the recipe's headline metrics; none if it was dropped from the catalogue."""
    try:
        return get_recipe(recipe).headline_metrics
    except UnknownRecipe:
        return []


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
