"""How far a judge agrees with people: the share of equal verdicts, and Cohen's kappa."""

from collections.abc import Mapping, Sequence
from typing import Any

from trellis_train.evaluate.benchmark import BenchmarkUnusable

_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


def read_label(row: Mapping[str, Any], column: str | None, place: str) -> float | None:
    """Read a human label from 0 to 1; None if missing. ``BenchmarkUnusable`` for anything else."""
    if column is None:
        return None
    if column not in row:
        raise BenchmarkUnusable(f"{place} has no column '{column}' with human labels")
    value = row[column]
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = _WORDS.get(value.strip().lower()) if isinstance(value, str) else value
    try:
        label = float(value if number is None else number)
    except (TypeError, ValueError):
        label = -1.0
    if not 0 <= label <= 1:
        raise BenchmarkUnusable(
            f"'{column}' in {place} is {str(value)[:100]!r}; a human label must be true, false, or 0 to 1"
        )
    return label


def cohens_kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Compute the agreement beyond chance (Cohen 1960), -1 to 1.

    None where it is not defined: without pairs, and where both sides always say the same one thing.

    >>> cohens_kappa([(True, True), (False, False), (True, False), (False, False)])
    0.5
    """
    n = len(pairs)
    if not n:
        return None
    observed = sum(one == other for one, other in pairs) / n
    first, second = sum(one for one, _ in pairs) / n, sum(other for _, other in pairs) / n
    by_chance = first * second + (1 - first) * (1 - second)
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def measure_agreement(pairs: Sequence[tuple[bool, bool]]) -> dict[str, float | str]:
    """Return remarks: number of people's verdicts, share of equal ones, kappa. Empty without pairs."""
    if not pairs:
        return {}
    kappa = cohens_kappa(pairs)
    return {
        "human_labels": float(len(pairs)),
        "human_agreement": sum(one == other for one, other in pairs) / len(pairs),
        **({} if kappa is None else {"human_kappa": kappa}),
    }
