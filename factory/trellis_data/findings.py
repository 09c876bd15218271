"""What a step has to say beyond counts, in forms that add up over batches, shards and processes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, TypeAdapter
from trellis_contracts.recipe import Strict


class Histogram(Strict):
    """How many values lie between edges; one on an edge counts above it, at the last edge below."""

    kind: Literal["histogram"] = "histogram"
    edges: list[float]
    counts: list[int]

    @classmethod
    def of(cls, values: np.ndarray, edges: Sequence[float]) -> Self:
        """Compute the histogram of values; those beyond the edges count in the outer bins, NaN nowhere."""
        inside = np.clip(values[~np.isnan(values)], edges[0], edges[-1])
        counts, _ = np.histogram(inside, bins=np.asarray(edges, dtype=float))
        return cls(edges=list(map(float, edges)), counts=counts.tolist())

    def merged(self, other: Self) -> Self:
        """Add two histograms, which must have the same edges."""
        if self.edges != other.edges:
            raise ValueError("histograms with different edges cannot be added")
        counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        return self.model_copy(update={"counts": counts})


class Standing(Strict):
    """A row and the value by which it stands out."""

    value: float
    row: dict[str, Any]


class Ranking(Strict):
    """The rows with the least and the greatest values, at most ``limit`` of each."""

    kind: Literal["ranking"] = "ranking"
    limit: int = Field(ge=1, le=100)
    lowest: list[Standing] = Field(default_factory=list)
    highest: list[Standing] = Field(default_factory=list)

    def merged(self, other: Self) -> Self:
        """Merge two rankings, keeping the extremes; among equal values those that came first."""
        lowest = sorted(self.lowest + other.lowest, key=lambda each: each.value)
        highest = sorted(self.highest + other.highest, key=lambda each: -each.value)
        return self.model_copy(update={"lowest": lowest[: self.limit], "highest": highest[: self.limit]})


class Tally(Strict):
    """How often names occurred: there may be very many, the ``limit`` most frequent ones are kept."""

    kind: Literal["tally"] = "tally"
    limit: int = Field(ge=1, le=10_000)
    counts: dict[str, int] = Field(default_factory=dict)
    #: Occurrences of names that are no longer kept.
    others: int = 0

    @classmethod
    def of(cls, names: Iterable[str], limit: int) -> Self:
        """Count how often each name occurs."""
        return cls(limit=limit, counts=dict(Counter(names)))._bounded()

    def merged(self, other: Self) -> Self:
        """Add two tallies. A name that was dropped before and comes back counts from then on."""
        counts = Counter(self.counts)
        counts.update(other.counts)
        return self.model_copy(
            update={"counts": dict(counts), "others": self.others + other.others}
        )._bounded()

    def _bounded(self) -> Self:
        ranked = sorted(self.counts.items(), key=lambda item: -item[1])
        beyond = sum(count for _, count in ranked[self.limit :])
        return self.model_copy(update={"counts": dict(ranked[: self.limit]), "others": self.others + beyond})


Finding = Annotated[Histogram | Ranking | Tally, Field(discriminator="kind")]
#: Reads findings back from a file.
FINDINGS: TypeAdapter[dict[str, Finding]] = TypeAdapter(dict[str, Finding])


def merge_findings(one: Mapping[str, Finding], other: Mapping[str, Finding]) -> dict[str, Finding]:
    """Merge the findings of two sets of rows; findings of the same name are of the same kind."""
    merged = dict(one)
    for name, finding in other.items():
        known: Any = merged.get(name)
        merged[name] = finding if known is None else known.merged(finding)
    return merged
