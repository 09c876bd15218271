"""Several tests at once: p-values that keep the chance of any false finding at the level of one test."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust by Holm (1979), step down: in their own order, never above 1 and never below the raw values.

    Comparing an adjusted value with 0.05 keeps the chance of one or more false findings among all of them
    at 5 %, whatever the tests have to do with each other.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted
