"""Runs an operator that must have seen all rows, as a pipeline does: shard by shard, files in between."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from trellis_contracts.recipe import DataFormat
from trellis_data.layout import Batch, Layout
from trellis_data.operator import GlobalOperator

TEXTS = Layout(DataFormat.TEXT, {"text": "text"})


@dataclass(frozen=True)
class Ran:
    """What came out."""

    table: pa.Table
    keep: np.ndarray
    reasons: dict[int, str]
    findings: dict[str, Any]
    reduced: Path


def run_global(
    operator: GlobalOperator,
    table: pa.Table,
    folder: Path,
    layout: Layout = TEXTS,
    shards: int = 3,
    size: int = 500,
) -> Ran:
    """Survey every shard in batches of ``size`` rows, reduce, apply."""
    edges = [number * table.num_rows // shards for number in range(shards + 1)]
    operator.check(table.schema, layout)
    scans = []
    for number, (first, last) in enumerate(pairwise(edges)):
        scan = folder / f"scan-{number}"
        scan.mkdir(parents=True)
        operator.scan(_batches(table, layout, first, last, size), scan)
        scans.append(scan)
    reduced = folder / "reduced"
    reduced.mkdir()
    findings = operator.reduce(scans, reduced)
    tables, keeps, reasons = [], [], {}
    for first, last in pairwise(edges):
        for batch in _batches(table, layout, first, last, size):
            outcome = operator.apply(batch, reduced)
            tables.append(outcome.table)
            keeps.append(outcome.keep)
            reasons |= {batch.start + at: reason for at, reason in outcome.reasons.items()}
    return Ran(pa.concat_tables(tables), np.concatenate(keeps), reasons, findings, reduced)


def _batches(table: pa.Table, layout: Layout, first: int, last: int, size: int) -> Iterator[Batch]:
    for start in range(first, last, size):
        yield Batch(table.slice(start, min(size, last - start)), layout, start)
