"""What the statistics of some rows say; two of them add up to those of all rows."""

from collections import Counter
from typing import Any, Self

import numpy as np
from pydantic import Field
from trellis_contracts.recipe import DataFormat, Strict

from trellis_data.findings import Histogram


def _edges() -> list[float]:
    """Return 0, 1, 2, 3, 4, 6, 8, 12 … to 2**31: two bins per doubling, fixed so that histograms add up."""
    edges = [0.0, 1.0]
    for power in range(1, 31):
        edges += [2.0**power, 1.5 * 2.0**power]
    return [*dict.fromkeys(edges), 2.0**31]


EDGES = _edges()


class Lengths(Strict):
    """Of how many texts or rows, how long they are, and the distribution."""

    count: int = 0
    least: int = 0
    most: int = 0
    total: int = 0
    histogram: Histogram = Field(
        default_factory=lambda: Histogram(edges=EDGES, counts=[0] * (len(EDGES) - 1))
    )

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        """Compute the distribution of these lengths."""
        if not len(values):
            return cls()
        return cls(
            count=len(values),
            least=int(values.min()),
            most=int(values.max()),
            total=int(values.sum()),
            histogram=Histogram.of(values.astype(float), EDGES),
        )

    def merged(self, other: Self) -> Self:
        """Merge two distributions."""
        if not self.count or not other.count:
            return self if self.count else other
        return self.model_copy(
            update={
                "count": self.count + other.count,
                "least": min(self.least, other.least),
                "most": max(self.most, other.most),
                "total": self.total + other.total,
                "histogram": self.histogram.merged(other.histogram),
            }
        )

    def quantile(self, share: float) -> float:
        """Estimate the length that this share of values is below, to within a bin of the histogram."""
        if not self.count:
            return 0.0
        reached = np.concatenate([[0], np.cumsum(self.histogram.counts)])
        at = float(np.interp(share * self.count, reached, self.histogram.edges))
        return float(min(max(at, self.least), self.most))


class ColumnStatistics(Strict):
    """One column."""

    name: str
    type: str
    values: int = 0
    nulls: int = 0
    #: Texts of nothing but white space, and lists without items.
    empty: int = 0
    #: Of numbers; None elsewhere.
    least: float | None = None
    most: float | None = None
    total: float | None = None

    def merged(self, other: Self) -> Self:
        """Merge the statistics of two sets of rows; the more specific type is kept."""
        bounds = {
            name: _both(getattr(self, name), getattr(other, name), with_)
            for name, with_ in (("least", min), ("most", max), ("total", lambda a, b: a + b))
        }
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("values", "nulls", "empty")}
        kind = other.type if self.type == "null" else self.type
        return self.model_copy(update={**bounds, **sums, "type": kind})


class Statistics(Strict):
    """Some rows in numbers."""

    rows: int = 0
    splits: dict[str, int] = Field(default_factory=dict)
    format: DataFormat = DataFormat.UNKNOWN
    columns: list[ColumnStatistics] = Field(default_factory=list)
    #: Of a row's texts together, in characters.
    characters: Lengths = Field(default_factory=Lengths)
    #: In the model's own tokens, of ``token_rows`` rows; None without a tokenizer.
    tokens: Lengths | None = None
    #: Of conversations.
    turns: Lengths = Field(default_factory=Lengths)
    #: Turns by speaker.
    roles: dict[str, int] = Field(default_factory=dict)
    #: Rows by language, of a sample.
    languages: dict[str, int] = Field(default_factory=dict)
    #: Rows that are the same as one before them; None where that is not known.
    duplicates: int | None = None

    def merged(self, other: Self) -> Self:
        """Merge the statistics of two sets of rows; duplicates become unknown, as common rows go unseen."""
        mine = {column.name: column for column in self.columns}
        for column in other.columns:
            known = mine.get(column.name)
            mine[column.name] = known.merged(column) if known else column
        tokens = self.tokens.merged(other.tokens) if self.tokens and other.tokens else None
        return self.model_copy(
            update={
                "rows": self.rows + other.rows,
                "columns": list(mine.values()),
                "characters": self.characters.merged(other.characters),
                "tokens": tokens or self.tokens or other.tokens,
                "turns": self.turns.merged(other.turns),
                **{
                    name: _added(getattr(self, name), getattr(other, name))
                    for name in ("splits", "roles", "languages")
                },
                "duplicates": None,
            }
        )


def _both(one: float | None, other: float | None, with_: Any) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return float(with_(one, other))


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    counted = Counter(one)
    counted.update(other)
    return dict(counted)
