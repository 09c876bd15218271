"""Runs a pipeline over Parquet files: stages in order, units side by side, every result whole or not there.

A stage is a global step, if there is one, and the row steps after it; its units pass all of them in
one go. What a run leaves in its work folder depends on the input and the pipeline alone: not on the
number of processes, nor on how often it was killed and called again.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from trellis_contracts.pipeline import Pipeline

from trellis_data.atomic_files import whole_folders, write_atomically
from trellis_data.catalogue import find_operator
from trellis_data.layout import Layout
from trellis_data.operator import Context, GlobalOperator
from trellis_data.pipeline.check import check
from trellis_data.pipeline.document import dump_pipeline, pipeline_hash
from trellis_data.pipeline.executors import Executor, ExecutorName, InlineExecutor, ProcessExecutor
from trellis_data.pipeline.finish import finish
from trellis_data.pipeline.ledger import Limits
from trellis_data.pipeline.problem import PipelineProblem, RunCancelled
from trellis_data.pipeline.report import Progress, RunReport
from trellis_data.pipeline.run_directory import RunDirectory
from trellis_data.pipeline.stage import Stage
from trellis_data.pipeline.tasks import ApplyTask, ReduceTask, ScanTask, StepPlan, Task, Unit, Work
from trellis_data.pipeline.units import cut, schema_of
from trellis_data.pipeline.worker import peak_memory_bytes


@dataclass(frozen=True)
class Options:
    """How a run works; none of it but ``partition_by`` and the limits shows in the result."""

    processes: int = field(default_factory=lambda: os.cpu_count() or 1)
    executor: ExecutorName = "processes"
    #: Of the cluster that the executor ``ray`` joins; None for that of ``RAY_ADDRESS``.
    ray_address: str | None = None
    batch_rows: int = 8192
    #: Rows of a unit: what is lost at most when a process dies, and what is held open for one.
    unit_rows: int = 131_072
    #: Column that parts the output where it is there; None for one output.
    partition_by: str | None = "split"
    examples: int = 5
    example_characters: int = 2000
    #: Dropped rows that are kept, a step; None for all.
    dropped: int | None = None
    #: Begin anew where the work folder holds another run.
    fresh: bool = False


def run(
    pipeline: Pipeline,
    inputs: Sequence[Path],
    work: Path,
    *,
    layout: Layout,
    context: Context | None = None,
    options: Options | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RunReport:
    """Work on the rows of Parquet files; go on where a run of the same in ``work`` stopped.

    ``layout`` says what the columns mean. Raises ``PipelineProblem``, or ``RunCancelled`` when
    ``should_stop`` says so.
    """
    started = time.monotonic()
    options = options or Options()
    context = replace(context or Context(), seed=pipeline.seed)
    if not inputs:
        raise PipelineProblem("no_input", "No input files.")
    schema = schema_of(inputs)
    if problems := check(pipeline, schema, layout, context):
        lines = [f"{each.field}: {each.message}" for each in problems]
        raise PipelineProblem(problems[0].code, "\n".join(lines), step=problems[0].step)
    folder = RunDirectory(work)
    with folder.locked():
        folder.enter(_identity(pipeline, inputs, layout, context, options), fresh=options.fresh)
        if folder.report.exists():
            shutil.rmtree(folder.root / "stages", ignore_errors=True)
            return RunReport.model_validate_json(folder.report.read_text(encoding="utf-8"))
        write_atomically(folder.root / "pipeline.yaml", dump_pipeline(pipeline))
        runner = _Runner(folder, options, context, on_progress or (lambda _: None), should_stop)
        stages, layout = plan(pipeline, layout)
        try:
            for stage in stages:
                runner.pass_stage(stage, len(stages), inputs, schema)
        finally:
            runner.executor.close()
        folder.sweep()
        report = finish(pipeline, stages, folder, runner.limits, layout)
        report.seconds = time.monotonic() - started
        report.peak_memory_bytes = runner.executor.peak_bytes + peak_memory_bytes()
        write_atomically(folder.report, report.model_dump_json(indent=1))
        shutil.rmtree(folder.root / "stages")
    return report


def plan(pipeline: Pipeline, layout: Layout) -> tuple[list[Stage], Layout]:
    """Divide a pipeline into stages, and return also what the columns mean at its end."""
    stages: list[Stage] = []
    for index, step in enumerate(pipeline.steps):
        operator = find_operator(step.operator)
        params = operator.Params.model_validate(step.params)
        made = StepPlan(
            step.name or step.operator,
            f"{operator.__module__}:{operator.__qualname__}",
            operator.id,
            params.model_dump_json(),
            layout,
        )
        is_global = issubclass(operator, GlobalOperator)
        if is_global or not stages:
            stages.append(Stage(len(stages), (made,), index, is_global))
        else:
            stages[-1] = replace(stages[-1], plans=(*stages[-1].plans, made))
        layout = operator.outline(params, Context()).layout_after(layout)
    return stages, layout


class _Runner:
    """Passes stages, one after the other."""

    def __init__(
        self,
        folder: RunDirectory,
        options: Options,
        context: Context,
        on_progress: Callable[[Progress], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self.folder = folder
        self.options = options
        self.context = context
        self.on_progress = on_progress
        self.should_stop = should_stop
        self.executor = _executor(options, context)
        self.limits = Limits(context.seed, options.examples, options.example_characters, options.dropped)

    def pass_stage(self, stage: Stage, stages: int, inputs: Sequence[Path], schema: pa.Schema) -> None:
        """Leave the stage's units; what went before it is no longer needed and goes."""
        folder = self.folder.stage(stage.number)
        whole = folder / "whole"
        if whole.exists():
            return
        if stage.number:
            before = self.folder.stage(stage.number - 1)
            inputs = [unit / "rows.parquet" for unit in whole_folders(before / "units")]
            schema = schema_of(inputs)
        units = cut(inputs, self.options.unit_rows)
        work = Work(schema, self.context, self.options.batch_rows, self.limits)
        reduced = self._reduce(stage, stages, units, work) if stage.is_global else None
        is_last = stage.number == stages - 1
        tasks = [
            ApplyTask(
                unit,
                folder / "units" / f"{number:06d}",
                work,
                stage.plans,
                reduced,
                (self.options.partition_by or "") if is_last else None,
            )
            for number, unit in enumerate(units)
        ]
        self._run(tasks, stage, stages, "apply")
        write_atomically(whole, "")
        if stage.number:
            for rows in inputs:
                rows.unlink()
        shutil.rmtree(folder / "scans", ignore_errors=True)

    def _reduce(self, stage: Stage, stages: int, units: list[Unit], work: Work) -> Path:
        step, scans = stage.plans[0], self.folder.stage(stage.number) / "scans"
        reduced = self.folder.reduced(stage.first + 1, step.name)
        if not reduced.exists():
            tasks = [ScanTask(unit, scans / f"{number:06d}", work, step) for number, unit in enumerate(units)]
            self._run(tasks, stage, stages, "scan")
            targets = tuple(task.target for task in tasks)
            self._run([ReduceTask(targets, reduced, work, step)], stage, stages, "reduce")
        return reduced

    def _run(self, tasks: Sequence[Task], stage: Stage, stages: int, phase: str) -> None:
        watch = _Watch(tasks, stage, stages, phase, self.on_progress, self.should_stop)
        waiting = [(index, task) for index, task in enumerate(tasks) if not task.target.exists()]
        for index in sorted(set(range(len(tasks))) - {index for index, _ in waiting}):
            watch.skip(index)
        watch.places = [index for index, _ in waiting]
        watch.check()
        self.executor.run([task for _, task in waiting], watch)


class _Watch:
    """Turns what tasks tell into progress of the phase."""

    def __init__(
        self,
        tasks: Sequence[Task],
        stage: Stage,
        stages: int,
        phase: str,
        on_progress: Callable[[Progress], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self.places: list[int] = []
        self._sizes = [0 if isinstance(task, ReduceTask) else task.unit.rows for task in tasks]
        self._done = [0] * len(tasks)
        self._steps = tuple(each.name for each in (stage.plans if phase == "apply" else stage.plans[:1]))
        self._where = (phase, stage.number + 1, stages)
        self._finished = 0
        self._skipped = 0
        self._started = time.monotonic()
        self._told = 0.0
        self._on_progress = on_progress
        self._should_stop = should_stop

    def skip(self, index: int) -> None:
        """Record that a task was already done by an earlier run."""
        self._done[index] = self._sizes[index]
        self._skipped += self._sizes[index]
        self._finished += 1

    def rows(self, task: int, count: int) -> None:
        index = self.places[task]
        self._done[index] = min(self._sizes[index], self._done[index] + count)
        if time.monotonic() - self._told > 0.2:
            self._tell()

    def done(self, task: int) -> None:
        index = self.places[task]
        self._done[index] = self._sizes[index]
        self._finished += 1
        self._tell()

    def check(self) -> None:
        if self._should_stop():
            raise RunCancelled("The run was stopped; start it again to resume.")

    def _tell(self) -> None:
        self._told = time.monotonic()
        done, total = sum(self._done), sum(self._sizes)
        rate = (done - self._skipped) / max(1e-9, self._told - self._started)
        phase, number, stages = self._where
        self._on_progress(
            Progress(
                steps=self._steps,
                phase=phase,
                stage=number,
                stages=stages,
                shards_done=self._finished,
                shards=len(self._sizes),
                rows_done=done,
                rows=total,
                rows_per_s=rate,
                eta_s=(total - done) / rate if rate else None,
            )
        )


def _executor(options: Options, context: Context) -> Executor:
    if options.executor == "ray":
        from trellis_data.pipeline.on_ray import RayExecutor

        of_judges = (getattr(each, "key_variable", None) for each in context.scorers.values())
        of_endpoints = (name for name in os.environ if name.startswith("EMBEDDING_"))
        return RayExecutor(options.ray_address, keys=[*filter(None, of_judges), *of_endpoints])
    return InlineExecutor() if options.executor == "inline" else ProcessExecutor(max(1, options.processes))


def _identity(
    pipeline: Pipeline, inputs: Sequence[Path], layout: Layout, context: Context, options: Options
) -> dict[str, Any]:
    """Return everything that determines the result, as the journal stores it."""
    value = {
        "pipeline": pipeline_hash(pipeline),
        "input": [_stamp(path) for path in inputs],
        "layout": [layout.format.value, layout.columns],
        "resources": {name: _stamps(path) for name, path in context.resources.items()},
        "tokenizer": _stamps(context.tokenizer) if context.tokenizer else [],
        "options": [
            options.batch_rows,
            options.unit_rows,
            options.partition_by,
            options.examples,
            options.example_characters,
            options.dropped,
        ],
    }
    plain: dict[str, Any] = json.loads(json.dumps(value))
    return plain


def _stamps(path: Path) -> list[list[Any]]:
    """Return the stamp of a file, or of every file directly in a folder."""
    return [_stamp(each) for each in (sorted(path.iterdir()) if path.is_dir() else [path]) if each.is_file()]


def _stamp(path: Path) -> list[Any]:
    """Return what identifies a file and its state: path, size and modification time."""
    state = path.stat()
    return [str(path.resolve()), state.st_size, state.st_mtime_ns]
