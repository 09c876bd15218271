"""Looks for rows that a pipeline changes or drops, for a preview that shows what its steps do."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis_data.layout import Batch, Layout
from trellis_data.operator import Operator, RowOperator
from trellis_data.pipeline.shards import conform

_BATCH_ROWS = 500


@dataclass(frozen=True)
class SearchLimits:
    """A person waits for the answer: rows and seconds after which a search ends."""

    rows: int = 20_000
    seconds: float = 3.0


class Found(NamedTuple):
    """Positions of rows to preview, in the order of the input."""

    positions: np.ndarray
    #: How many of them a step touched; the rest are untouched rows from the beginning.
    touched: int
    #: How many rows were looked at.
    searched: int


def find_touched(
    steps: Sequence[Operator],
    inputs: Sequence[Path],
    schema: pa.Schema,
    layout: Layout,
    *,
    wanted: int,
    seed: int | None,
    limits: SearchLimits,
) -> Found:
    """Find rows that a step changes or drops: the first ones, or with a seed from a random sample.

    Steps that compare rows are passed over, and steps behind one that calls a model are not looked at: to
    search by them would take the time, or the money, of a run.
    """
    searched_steps = _cheap_steps(steps, schema)
    until = time.monotonic() + limits.seconds
    touched: list[int] = []
    candidates: list[int] = []
    for table, positions in _candidates(inputs, schema, draw(inputs, limits.rows, seed)):
        candidates.extend(positions.tolist())
        touched.extend(positions[_touch(searched_steps, Batch(table, layout))].tolist())
        if len(touched) >= wanted or time.monotonic() > until:
            break
    chosen = touched[:wanted]
    left = np.setdiff1d(np.asarray(candidates, np.int64), np.asarray(touched, np.int64))
    positions = np.sort(np.concatenate([np.asarray(chosen, np.int64), left[: wanted - len(chosen)]]))
    return Found(positions, touched=len(chosen), searched=len(candidates))


def _cheap_steps(steps: Sequence[Operator], schema: pa.Schema) -> list[Operator]:
    """Choose the steps to try: those that judge rows one by one, up to one whose columns would be missing."""
    found: list[Operator] = []
    for step in steps:
        asks_model = getattr(step.params, "scorer", None) in step.context.scorers
        if isinstance(step, RowOperator) and not asks_model:
            found.append(step)
        elif step.schema_after(schema) != schema:
            break
        schema = step.schema_after(schema)
    return found


def _touch(steps: Sequence[Operator], batch: Batch) -> np.ndarray:
    """Mark the rows of the batch that a step changes or drops (bool)."""
    touched = np.zeros(batch.table.num_rows, bool)
    origins = np.arange(batch.table.num_rows)
    for step in steps:
        outcome = cast(RowOperator, step).apply(batch)
        touched[origins[outcome.changed | ~outcome.keep]] = True
        origins = origins[np.flatnonzero(outcome.keep) if outcome.sources is None else outcome.sources]
        batch = Batch(outcome.table, step.layout_after(batch.layout))
    return touched


def draw(inputs: Sequence[Path], rows: int, seed: int | None) -> np.ndarray:
    """Choose the positions of the first rows, or with a seed of a random sample, in input order."""
    total = sum(pq.read_metadata(path).num_rows for path in inputs)
    if seed is None or total <= rows:
        return np.arange(min(rows, total))
    return np.sort(np.random.default_rng(seed).choice(total, rows, replace=False))


def _candidates(
    inputs: Sequence[Path], schema: pa.Schema, wanted: np.ndarray
) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yield the rows at some positions in batches, with their positions."""
    start = 0
    for path in inputs:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                mine = wanted[(wanted >= start) & (wanted < start + batch.num_rows)]
                if len(mine):
                    table = pa.Table.from_batches([batch]).take(pa.array(mine - start))
                    yield conform(table, schema).combine_chunks(), mine
                start += batch.num_rows
                if not len(wanted) or start > wanted[-1]:
                    return
