"""What the name of a metric says: whether higher or lower is better, and whether it is of validation data."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, cast

from trellis_recipes.catalogue import UnknownRecipe, get_recipe

from trellis_api.jobs.models import Job

Mode = Literal["max", "min"]

_VALIDATION = re.compile(r"^(?:val|valid|validation|eval|test)(?:[-_/]|$)")
_WORD = re.compile(r"[a-z]+")
#: Metrics in which the data's source or label stands before what was measured.
_SOURCE_FOLLOWS = ("val-core", "val-aux", "eval")
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
    words = set(_WORD.findall(_without_source(key).lower()))
    return words - {"entropy"} | {"loss"} if {"cross", "entropy"} <= words else words


def _without_source(key: str) -> str:
    """Return what was measured: the data's source or label is a user's word, whatever it says.

    >>> _without_source("val-core/time/qa/acc/mean@1"), _without_source("eval/memory/accuracy")
    ('acc/mean@1', 'accuracy')
    """
    prefix, *parts = key.split("/")
    if prefix not in _SOURCE_FOLLOWS or len(parts) < 2:
        return key
    # verl's: val-core/<source>/<variable>/<statistic>@<samples>, where a source may have slashes of its own.
    statistic = next((place for place, part in enumerate(parts) if place and "@" in part), len(parts))
    return "/".join(parts[statistic - 1 :])


def list_headline(recipe: str) -> Sequence[str]:
    """Return the recipe's headline metrics; none if it was dropped from the catalogue."""
    try:
        return get_recipe(recipe).headline_metrics
    except UnknownRecipe:
        return []
