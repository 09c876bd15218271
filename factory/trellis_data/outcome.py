"""What an operator made of a batch, and what a report says of a step."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field
from trellis_contracts.recipe import Strict

from trellis_data.findings import Finding


@dataclass(frozen=True)
class Outcome:
    """Rows that go on, and for each row of the batch what became of it."""

    #: The rows that go on, in their order; columns may be new.
    table: pa.Table
    #: bool, one a row of the batch: whether it goes on.
    keep: np.ndarray
    #: bool, one a row of the batch: whether it goes on changed.
    changed: np.ndarray
    #: Why a row does not go on, by its index in the batch: a code such as ``too_short``.
    reasons: dict[int, str] = field(default_factory=dict)
    #: What else was counted, such as ``{"email": 12}``; added up over batches.
    counts: Counter[str] = field(default_factory=Counter)
    #: Where rows are not one to one (a pair becomes two): for each row of ``table`` its row in the batch.
    sources: np.ndarray | None = None
    #: What adds up but is more than a count: histograms, rows that stand out (``merge_findings``).
    findings: dict[str, Finding] = field(default_factory=dict)


class Example(Strict):
    """A row before and after a step."""

    #: Position of the row among all rows of the pipeline's input.
    position: int
    kind: Literal["changed", "dropped"]
    reason: str | None = None
    before: dict[str, Any]
    after: dict[str, Any] | None = None


class StepReport(Strict):
    """What a step did to all rows."""

    name: str
    operator: str
    rows_in: int = 0
    kept: int = 0
    changed: int = 0
    dropped: int = 0
    reasons: dict[str, int] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)
    #: Processor time over all processes.
    seconds: float = 0.0
    examples: list[Example] = Field(default_factory=list)
    #: What only this operator has to say: findings of its outcomes (``trellis_data.findings``), and what a
    #: global operator reduced, such as largest clusters or the recall of a sketch.
    findings: dict[str, Any] = Field(default_factory=dict)


def kept_all(table: pa.Table, changed: np.ndarray | None = None) -> Outcome:
    """Return an outcome that keeps every row; ``changed`` marks those that differ."""
    size = table.num_rows
    return Outcome(
        table, np.ones(size, dtype=bool), np.zeros(size, dtype=bool) if changed is None else changed
    )


def dropping(table: pa.Table, why: dict[str, np.ndarray]) -> Outcome:
    """Keep the rows that no reason hits; ``why`` maps a code to a mask of rows, and the first hit counts."""
    keep = np.ones(table.num_rows, dtype=bool)
    reasons: dict[int, str] = {}
    for code, hits in why.items():
        for index in np.flatnonzero(hits & keep):
            reasons[int(index)] = code
        keep &= ~hits
    return Outcome(table.filter(pa.array(keep)), keep, np.zeros(len(keep), dtype=bool), reasons)
