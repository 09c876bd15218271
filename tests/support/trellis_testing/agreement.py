"""Compares two scorers output by output: each disagreement must belong to a class that is explained."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Judged(NamedTuple):
    """One output as both scorers see it."""

    #: What kind of output it is: the name of the class where the two disagree.
    style: str
    metric: str
    output: str
    gold: str
    ours: bool
    theirs: bool


def compare(outputs: Iterable[Judged], explained: Mapping[tuple[str, str], str]) -> str:
    """Build the table of disagreements by (style, metric).

    Raises AssertionError if one is not explained, or if an explained class never occurs.
    """
    judged = list(outputs)
    apart = [each for each in judged if each.ours != each.theirs]
    unexplained = [each for each in apart if (each.style, each.metric) not in explained]
    first = {(each.style, each.metric): each for each in unexplained}
    assert not unexplained, "\n".join(map(str, first.values()))
    counts = Counter((each.style, each.metric) for each in apart)
    stale = [key for key in explained if not counts[key]]
    assert not stale, f"explained, but both agree: {stale}"
    lines = [f"{counts[key]:5}  {key[0]} ({key[1]}): {explained[key]}" for key in sorted(counts, key=str)]
    return "\n".join([f"{len(judged)} judged, {len(apart)} disagreements, all explained:", *lines])
