"""What one process does at a time: take a unit of rows through a stage's steps, or part of a global step.

A task is plain data: it travels to a process of this machine or of a Ray cluster, finds its input in
files and leaves its result in a folder that appears whole.
"""

import importlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis_data.atomic_files import publishing
from trellis_data.batching import read_tables
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, GlobalOperator, Operator, OperatorProblem, RowOperator
from trellis_data.outcome import Outcome
from trellis_data.pipeline.ledger import Ledger, Limits
from trellis_data.pipeline.problem import PipelineProblem, RunCancelled
from trellis_data.pipeline.shards import ORIGIN, ShardWriter, conform

#: Called between batches with the rows done since the last call; may raise to end the work.
Tick = Callable[[int], None]


@dataclass(frozen=True)
class Unit:
    """Rows that are worked on together: some row groups of a Parquet file."""

    path: Path
    groups: tuple[int, ...]
    #: Position of the first row among all rows of the stage's input.
    start: int
    rows: int

    @property
    def label(self) -> str:
        """What a person finds the rows by."""
        return f"{self.path.name}, rows {self.start:,} to {self.start + self.rows:,}"


@dataclass(frozen=True)
class StepPlan:
    """A step as a process rebuilds its operator."""

    name: str
    #: "module:class", so that a process needs no catalogue.
    operator: str
    operator_id: str
    params: str
    layout: Layout


@dataclass(frozen=True)
class Work:
    """What all tasks of a stage share."""

    schema: pa.Schema
    context: Context
    batch_rows: int
    limits: Limits


@dataclass(frozen=True)
class ApplyTask:
    """Take a unit through the steps of a stage."""

    unit: Unit
    target: Path
    work: Work
    steps: tuple[StepPlan, ...]
    #: What was reduced for the first step, where that is a global one.
    reduced: Path | None
    #: In the last stage the column whose values part the output where it is there; None before.
    partition_by: str | None = None

    def run(self, tick: Tick) -> None:
        """Leave the rows, the dropped ones and a partial report in ``target``."""
        ledgers = [Ledger(plan.name, plan.operator_id, self.work.limits) for plan in self.steps]
        with publishing(self.target) as folder:
            writer = ShardWriter(folder, self.partition_by)
            for ledger, number in zip(ledgers, range(len(ledgers)), strict=True):
                ledger.open(folder / dropped_file(number))
            for batch, origins in _batches(self.unit, self.work, self.steps[0].layout):
                rows = len(batch)
                table, origins = self._through(batch, origins, ledgers)
                writer.write(table, origins)
                tick(rows)
            writer.close()
            parts = [ledger.close().model_dump(mode="json") for ledger in ledgers]
            (folder / "report.json").write_text(json.dumps({"steps": parts, "rows": writer.rows}))

    def _through(
        self, batch: Batch, origins: np.ndarray, ledgers: list[Ledger]
    ) -> tuple[pa.Table, np.ndarray]:
        for number, (plan, ledger) in enumerate(zip(self.steps, ledgers, strict=True)):
            operator = _operator(plan, self.work.context)
            is_first = number == 0
            batch = replace(batch, layout=plan.layout, start=batch.start if is_first and self.reduced else 0)
            started = time.process_time()
            with _blamed(plan, self.unit):
                if self.reduced is not None and is_first:
                    outcome = cast(GlobalOperator, operator).apply(batch, self.reduced)
                else:
                    outcome = cast(RowOperator, operator).apply(batch)
                sources = _sources(outcome, len(batch))
            ledger.note(batch, outcome, origins, sources, time.process_time() - started)
            batch, origins = replace(batch, table=outcome.table), origins[sources]
        return batch.table, origins


@dataclass(frozen=True)
class ScanTask:
    """Let a global step look at a unit."""

    unit: Unit
    target: Path
    work: Work
    step: StepPlan

    def run(self, tick: Tick) -> None:
        """Leave the scan in ``target``."""
        operator = cast(GlobalOperator, _operator(self.step, self.work.context))
        with publishing(self.target) as folder, _blamed(self.step, self.unit):
            started = time.process_time()
            operator.scan(self._watched(tick), folder)
            _note_seconds(folder, time.process_time() - started)

    def _watched(self, tick: Tick) -> Iterator[Batch]:
        for batch, _ in _batches(self.unit, self.work, self.step.layout):
            yield batch
            tick(len(batch))


@dataclass(frozen=True)
class ReduceTask:
    """Let a global step decide by all scans."""

    scans: tuple[Path, ...]
    target: Path
    work: Work
    step: StepPlan

    def run(self, tick: Tick) -> None:
        """Leave the decisions in ``target`` and the findings beside them."""
        operator = cast(GlobalOperator, _operator(self.step, self.work.context))
        with publishing(self.target) as folder, _blamed(self.step, None):
            started = time.process_time()
            findings = operator.reduce(self.scans, folder)
            spent = time.process_time() - started + sum(map(read_seconds, self.scans))
            _note_seconds(folder, spent)
            (folder / FINDINGS).write_text(json.dumps(findings, ensure_ascii=False))
        tick(0)


Task = ApplyTask | ScanTask | ReduceTask
#: Files of the runner's own in the folders of scans and decisions.
FINDINGS = "trellis-findings.json"
SECONDS = "trellis-seconds.json"


def dropped_file(step: int) -> str:
    """Return the file of rows that a step dropped; no split's name begins like this."""
    return f"_dropped-{step}.parquet"


def run_task(task: Task, tick: Tick) -> None:
    """Do a task; one that is done already, by a run before this one, is left as it is."""
    if not task.target.exists():
        task.run(tick)


def label_of(task: Task) -> str:
    """Return a label by which a person can find the task's rows."""
    return "all rows" if isinstance(task, ReduceTask) else task.unit.label


def read_seconds(folder: Path) -> float:
    """Read the processor time that a scan took, or a reduction together with all of its scans."""
    return float(json.loads((folder / SECONDS).read_text()))


def _note_seconds(folder: Path, seconds: float) -> None:
    (folder / SECONDS).write_text(json.dumps(seconds))


def _batches(unit: Unit, work: Work, layout: Layout) -> Iterator[tuple[Batch, np.ndarray]]:
    """Yield the unit's rows and their positions in the pipeline's input; one empty batch if it is empty."""
    done = 0
    with pq.ParquetFile(unit.path) as file:
        for table in read_tables(file, work.batch_rows, unit.groups):
            if ORIGIN in table.column_names:
                origins = table.column(ORIGIN).to_numpy()
                table = table.drop_columns([ORIGIN])
            else:
                origins = np.arange(unit.start + done, unit.start + done + table.num_rows)
            yield Batch(conform(table, work.schema), layout, unit.start + done), origins
            done += table.num_rows
    if not done:
        yield Batch(work.schema.empty_table(), layout, unit.start), np.empty(0, dtype=np.int64)


#: Operators of this process, the latest last.
_MADE: dict[tuple[str, str, str], Operator] = {}
_MOST_MADE = 64


def _build(plan: StepPlan, context: Context) -> Operator:
    module, _, name = plan.operator.partition(":")
    found: type[Operator] = getattr(importlib.import_module(module), name)
    return found(found.Params.model_validate_json(plan.params), context)


def _operator(plan: StepPlan, context: Context) -> Operator:
    """Return the step's operator, created once per process: its constructor may read large files."""
    key = (plan.operator, plan.params, repr(context))
    if key in _MADE:
        return _MADE[key]
    if len(_MADE) == _MOST_MADE:
        del _MADE[next(iter(_MADE))]
    try:
        _MADE[key] = _build(plan, context)
    except OperatorProblem as problem:
        raise PipelineProblem(
            problem.code, f"Step '{plan.name}': {problem.message}", step=plan.name
        ) from problem
    return _MADE[key]


def _sources(outcome: Outcome, rows: int) -> np.ndarray:
    """Return the batch row that each row of the outcome came from."""
    if len(outcome.keep) != rows or len(outcome.changed) != rows:
        raise ValueError(f"the operator answered for {len(outcome.keep)} of {rows} rows")
    sources = np.flatnonzero(outcome.keep) if outcome.sources is None else outcome.sources
    if len(sources) != outcome.table.num_rows:
        raise ValueError(f"{outcome.table.num_rows} rows go on, but {len(sources)} are said to")
    return sources


class _blamed:
    """What an operator raises is told with its step and its rows."""

    def __init__(self, plan: StepPlan, unit: Unit | None) -> None:
        self._plan = plan
        self._unit = unit

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, RunCancelled):
            return
        where = self._unit.label if self._unit else "all rows"
        code = error.code if isinstance(error, OperatorProblem | PipelineProblem) else "step_failed"
        said = str(error) if isinstance(error, OperatorProblem) else f"{type(error).__name__}: {error}"
        raise PipelineProblem(
            code,
            f"Step '{self._plan.name}' ({self._plan.operator_id}) failed at {where}: {said}",
            step=self._plan.name,
            shard=where,
        ) from error
