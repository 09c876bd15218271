"""A pipeline on a few rows, here and now: what every step does to each of them."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import Strict

from trellis_data.catalogue import find_operator
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, GlobalOperator, OperatorProblem, RowOperator
from trellis_data.outcome import Outcome, StepReport
from trellis_data.pipeline.check import check
from trellis_data.pipeline.ledger import Ledger, Limits, shorten
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.shards import conform
from trellis_data.pipeline.units import schema_of

#: More would no longer be looked at by a person, and would keep them waiting.
MAX_ROWS = 1000


class PreviewRow(Strict):
    """What a step did to a row."""

    position: int
    state: Literal["kept", "changed", "dropped"]
    reason: str | None = None
    before: dict[str, Any]
    #: Empty where the row was dropped; more than one where it became several.
    after: list[dict[str, Any]] = Field(default_factory=list)


class PreviewStep(Strict):
    """A step on the sample."""

    report: StepReport
    rows: list[PreviewRow]


class Preview(Strict):
    """The sample, step by step."""

    rows_in: int
    rows_out: int
    steps: list[PreviewStep]


def preview(
    pipeline: Pipeline,
    inputs: Sequence[Path],
    *,
    layout: Layout,
    rows: int = 20,
    at_random: bool = False,
    context: Context | None = None,
    characters: int = 2000,
) -> Preview:
    """Take the first rows, or ones drawn by the pipeline's seed, through all steps.

    Global steps see the sample alone: two duplicates are found only if both are in it.
    """
    context = replace(context or Context(), seed=pipeline.seed)
    schema = schema_of(inputs)
    if problems := check(pipeline, schema, layout, context):
        lines = [f"{each.field}: {each.message}" for each in problems]
        raise PipelineProblem(problems[0].code, "\n".join(lines), step=problems[0].step)
    table, origins = sample(inputs, schema, min(rows, MAX_ROWS), pipeline.seed if at_random else None)
    size = table.num_rows
    steps = []
    for step in pipeline.steps:
        name, operator = step.name or step.operator, find_operator(step.operator)
        params = operator.Params.model_validate(step.params)
        batch = Batch(table, layout)
        try:
            made = operator(params, context)
            outcome = _apply(made, batch)
        except OperatorProblem as problem:
            raise PipelineProblem(problem.code, f"Step '{name}': {problem.message}", step=name) from problem
        sources = np.flatnonzero(outcome.keep) if outcome.sources is None else outcome.sources
        ledger = Ledger(name, operator.id, Limits(examples=0))
        ledger.note(batch, outcome, origins, sources, 0.0)
        steps.append(
            PreviewStep(report=ledger.close(), rows=_rows(batch, outcome, origins, sources, characters))
        )
        layout = made.layout_after(layout)
        table, origins = outcome.table, origins[sources]
    return Preview(rows_in=size, rows_out=table.num_rows, steps=steps)


def sample(
    inputs: Sequence[Path], schema: pa.Schema, rows: int, seed: int | None
) -> tuple[pa.Table, np.ndarray]:
    """The first rows, or with a seed ones drawn evenly, in the order of the input; and their positions."""
    total = sum(pq.read_metadata(path).num_rows for path in inputs)
    wanted = np.arange(min(rows, total))
    if seed is not None and total > rows:
        wanted = np.sort(np.random.default_rng(seed).choice(total, rows, replace=False))
    tables, start = [schema.empty_table()], 0
    for path in inputs:
        with pq.ParquetFile(path) as file:
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                mine = wanted[(wanted >= start) & (wanted < start + size)] - start
                if len(mine):
                    tables.append(conform(file.read_row_group(group).take(pa.array(mine)), schema))
                start += size
    return pa.concat_tables(tables).combine_chunks(), wanted


def _apply(operator: object, batch: Batch) -> Outcome:
    if not isinstance(operator, GlobalOperator):
        return cast(RowOperator, operator).apply(batch)
    with tempfile.TemporaryDirectory(prefix="trellis-preview-") as place:
        scan, reduced = Path(place) / "scan", Path(place) / "reduced"
        scan.mkdir()
        reduced.mkdir()
        operator.scan(iter([batch]), scan)
        operator.reduce([scan], reduced)
        return operator.apply(batch, reduced)


def _rows(
    batch: Batch, outcome: Outcome, origins: np.ndarray, sources: np.ndarray, characters: int
) -> list[PreviewRow]:
    after: dict[int, list[dict[str, Any]]] = {}
    for source, row in zip(sources, outcome.table.to_pylist(), strict=True):
        after.setdefault(int(source), []).append(shorten(row, characters))
    return [
        PreviewRow(
            position=int(origins[index]),
            state=_state(outcome, index),
            reason=outcome.reasons.get(index) if not outcome.keep[index] else None,
            before=shorten(before, characters),
            after=after.get(index, []),
        )
        for index, before in enumerate(batch.table.to_pylist())
    ]


def _state(outcome: Outcome, index: int) -> Literal["kept", "changed", "dropped"]:
    if not outcome.keep[index]:
        return "dropped"
    return "changed" if outcome.changed[index] else "kept"
