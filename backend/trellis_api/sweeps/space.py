"""The values that parameters take: all combinations, or independent draws that anybody can repeat."""

import math
import random
from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

from trellis_contracts.recipe import Recipe

from trellis_api.sweeps.schemas import Variation

OVERRIDES = "overrides."
_MAX_TRIES = 50
Values = dict[str, Any]


def is_integer(name: str, variation: Variation, recipe: Recipe | None) -> bool:
    """Tell whether only whole numbers are meant."""
    parameter = recipe.parameter(name) if recipe is not None else None
    if parameter is not None and not name.startswith(OVERRIDES):
        return parameter.type == "int"
    bounds = (variation.min, variation.max, *([] if variation.step is None else [variation.step]))
    return all(isinstance(bound, int) for bound in bounds)


def clean(value: float, *, as_integer: bool) -> float | int:
    """Round a number to what a person would write: without floating-point noise."""
    return round(value) if as_integer else float(f"{value:.6g}")


def list_points(variation: Variation, *, as_integer: bool) -> list[Any] | None:
    """List the values of a list or of a range with points, each once; None for a range without points."""
    if variation.values is not None:
        return list(variation.values)
    low, high = _bounds(variation)
    if variation.step is not None:
        count = math.floor((high - low) / variation.step + 1e-9) + 1
        raw = [low + index * variation.step for index in range(count)]
    elif variation.count is not None:
        shares = [index / (variation.count - 1) for index in range(variation.count)]
        raw = [_at(variation, share) for share in shares]
    else:
        return None
    return list(dict.fromkeys(clean(value, as_integer=as_integer) for value in raw))


def count_grid(parameters: Mapping[str, Variation], integers: Mapping[str, bool]) -> int | None:
    """Count the combinations of all values; None if a range has no points."""
    total = 1
    for name, variation in parameters.items():
        points = list_points(variation, as_integer=integers[name])
        if points is None:
            return None
        total *= len(points)
    return total


def grid(parameters: Mapping[str, Variation], integers: Mapping[str, bool]) -> Iterator[Values]:
    """Yield all combinations, the last parameter changing first."""
    points = [list_points(each, as_integer=integers[name]) or [] for name, each in parameters.items()]
    for combination in product(*points):
        yield dict(zip(parameters, combination, strict=True))


def grid_at(parameters: Mapping[str, Variation], integers: Mapping[str, bool], trial: int) -> Values | None:
    """Return the combination of one trial; None after the last."""
    return next(islice(grid(parameters, integers), trial, None), None)


def draw(
    parameters: Mapping[str, Variation],
    integers: Mapping[str, bool],
    *,
    seed: int,
    trial: int,
    known: list[Values],
) -> Values:
    """Draw one trial's values independently and reproducibly; not one of ``known`` if others are left."""
    source = random.Random(f"{seed}:{trial}")  # noqa: S311 (no secret)
    found: Values = {}
    for _ in range(_MAX_TRIES):
        found = {name: _draw(each, source, integers[name]) for name, each in parameters.items()}
        if found not in known:
            break
    return found


def list_extremes(variation: Variation, *, as_integer: bool, limit: int) -> list[Any]:
    """List the values to check before anything runs: the bounds, or up to ``limit`` of listed values."""
    if variation.values is not None:
        found = list(variation.values)
        return found if len(found) <= limit else [*found[: limit - 1], found[-1]]
    low, high = _bounds(variation)
    return [clean(low, as_integer=as_integer), clean(high, as_integer=as_integer)]


def _draw(variation: Variation, source: random.Random, as_integer: bool) -> Any:
    if variation.values is not None or variation.step is not None:
        return source.choice(list_points(variation, as_integer=as_integer) or [])
    if as_integer and variation.scale == "linear":
        low, high = _bounds(variation)
        return source.randint(round(low), round(high))
    return clean(_at(variation, source.random()), as_integer=as_integer)


def _at(variation: Variation, share: float) -> float:
    low, high = _bounds(variation)
    if variation.scale == "log":
        return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    return low + share * (high - low)


def _bounds(variation: Variation) -> tuple[float, float]:
    assert variation.min is not None  # noqa: S101 (the schema has seen to it)
    assert variation.max is not None  # noqa: S101
    return variation.min, variation.max
