"""A pipeline on a few rows, here and now: what every step does to each of them."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field
from trellis_contracts.pipeline import Pipeline, Step
from trellis_contracts.recipe import Strict

from trellis_data.catalogue import find_operator
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, GlobalOperator, Operator, OperatorProblem, RowOperator
from trellis_data.outcome import Outcome, StepReport
from trellis_data.pipeline.check import check
from trellis_data.pipeline.ledger import Ledger, Limits, shorten
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.shards import conform
from trellis_data.pipeline.touched_rows import SearchLimits, draw, find_touched
from trellis_data.pipeline.units import schema_of

#: More would no longer be looked at by a person, and would keep them waiting.
MAX_ROWS = 1000
_SEARCH_LIMITS = SearchLimits()


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
    #: Where rows were searched for: how many were looked at, and how many of the sample a step touches.
    rows_searched: int | None = None
    rows_touched: int | None = None
    steps: list[PreviewStep]


def preview(
    pipeline: Pipeline,
    inputs: Sequence[Path],
    *,
    layout: Layout,
    rows: int = 20,
    at_random: bool = False,
    find_changed: bool = False,
    context: Context | None = None,
    characters: int = 2000,
    limits: SearchLimits = _SEARCH_LIMITS,
) -> Preview:
    """Take the first rows, or ones drawn by the pipeline's seed, through all steps.

    With ``find_changed``, rows come first that a step changes or drops, within the limits of a search.
    Global steps see the sample alone: two duplicates are found only if both are in it.
    """
    context = replace(context or Context(), seed=pipeline.seed)
    schema = schema_of(inputs)
    if problems := check(pipeline, schema, layout, context):
        lines = [f"{each.field}: {each.message}" for each in problems]
        raise PipelineProblem(problems[0].code, "\n".join(lines), step=problems[0].step)
    wanted, seed = min(rows, MAX_ROWS), pipeline.seed if at_random else None
    names = [step.name or step.operator for step in pipeline.steps]
    operators = [_make(step, name, context) for step, name in zip(pipeline.steps, names, strict=True)]
    found = None
    if find_changed:
        found = find_touched(operators, inputs, schema, layout, wanted=wanted, seed=seed, limits=limits)
    places = draw(inputs, wanted, seed) if found is None else found.positions
    table, origins = take_rows(inputs, schema, places), places
    size = table.num_rows
    steps = []
    for name, made in zip(names, operators, strict=True):
        batch = Batch(table, layout)
        with _named_problems(name):
            outcome = _apply(made, batch)
        sources = np.flatnonzero(outcome.keep) if outcome.sources is None else outcome.sources
        ledger = Ledger(name, made.id, Limits(examples=0))
        ledger.note(batch, outcome, origins, sources, 0.0)
        steps.append(
            PreviewStep(report=ledger.close(), rows=_rows(batch, outcome, origins, sources, characters))
        )
        layout = made.layout_after(layout)
        table, origins = outcome.table, origins[sources]
    return Preview(
        rows_in=size,
        rows_out=table.num_rows,
        rows_searched=None if found is None else found.searched,
        rows_touched=None if found is None else found.touched,
        steps=steps,
    )


def _make(step: Step, name: str, context: Context) -> Operator:
    operator = find_operator(step.operator)
    with _named_problems(name):
        return operator(operator.Params.model_validate(step.params), context)


@contextmanager
def _named_problems(name: str) -> Iterator[None]:
    """Add the step's name to its problems."""
    try:
        yield
    except OperatorProblem as problem:
        raise PipelineProblem(problem.code, f"Step '{name}': {problem.message}", step=name) from problem


def take_rows(inputs: Sequence[Path], schema: pa.Schema, wanted: np.ndarray) -> pa.Table:
    """Read the rows at some positions, which are in order."""
    tables, start = [schema.empty_table()], 0
    for path in inputs:
        with pq.ParquetFile(path) as file:
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                mine = wanted[(wanted >= start) & (wanted < start + size)] - start
                if len(mine):
                    tables.append(conform(file.read_row_group(group).take(pa.array(mine)), schema))
                start += size
    return pa.concat_tables(tables).combine_chunks()


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
