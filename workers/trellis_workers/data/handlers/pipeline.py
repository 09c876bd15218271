"""A pipeline over the rows of a version."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trellis_contracts.data_tasks import DataTaskProgress, NoOutput, PipelineTask, VersionOutput
from trellis_data.pipeline.check import stated_layout
from trellis_data.pipeline.document import dump_pipeline
from trellis_data.pipeline.executors import ExecutorName
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.report import Progress, RunReport
from trellis_data.pipeline.runner import Options, run
from trellis_data.pipeline.units import schema_of
from trellis_data.versions.records import Provenance, Version
from trellis_data.versions.store import Store
from trellis_data.versions.version_rows import files_of

from trellis_workers.data.context import make_context
from trellis_workers.data.files import ChildTask
from trellis_workers.data.marking import mark_splits, needs_marks
from trellis_workers.data.recording import Content, record
from trellis_workers.data.task_version import read_version
from trellis_workers.data.tools import Tools

#: In the task's folder: what the runner keeps, and the API shows rows from.
FOLDER = "run"
#: Rows that know their split.
MARKED = "marked"
_FEW_ROWS = 20_000


def carry_out(task: ChildTask, tools: Tools) -> dict[str, Any]:
    """Run the pipeline, going on where it stopped, and add its rows as a version where that is wanted."""
    request = task.request
    if not isinstance(request, PipelineTask):
        raise TypeError(f"{request.kind} is no run of a pipeline")
    store, version = read_version(task)
    inputs = _inputs(store, version, request.splits)
    files = [path for paths in inputs.values() for path in paths]
    layout = stated_layout(request.pipeline, schema_of(files)) or store.tree(version.commit.tree).layout
    if needs_marks(request.pipeline, inputs):
        tools.tell_rows("bring", 0, version_rows(version, inputs))
        files = mark_splits(inputs, tools.folder / MARKED)
    work = tools.folder / FOLDER
    report = run(
        request.pipeline,
        files,
        work,
        layout=layout,
        context=make_context(task.needs, tools.folder),
        options=_options(task, request, version_rows(version, inputs)),
        on_progress=lambda now: tools.tell(_translate(now)),
    )
    if not isinstance(request.output, NoOutput):
        record(task, tools, _content(request, report, version, work, list(inputs)))
    return report.model_dump(mode="json")


def _options(task: ChildTask, request: PipelineTask, rows: int) -> Options:
    """Choose the options: few rows run in this process, as others take longer to start; same results."""
    processes = task.processes or 1
    is_small = request.executor == "processes" and (processes == 1 or rows <= _FEW_ROWS)
    executor: ExecutorName = "inline" if is_small else request.executor
    return Options(processes=processes, executor=executor, ray_address=task.ray_address)


def version_rows(version: Version, splits: Iterable[str]) -> int:
    """Count the rows of some splits."""
    return sum(version.commit.rows.get(name, 0) for name in splits)


def _inputs(store: Store, version: Version, wanted: list[str] | None) -> dict[str, list[Path]]:
    splits = files_of(store, version)
    missing = [name for name in wanted or [] if name not in splits]
    if missing:
        raise PipelineProblem("split_unknown", f"The version has no split {', '.join(missing)}.")
    return {name: paths for name, paths in splits.items() if wanted is None or name in wanted}


def _content(
    request: PipelineTask, report: RunReport, version: Version, work: Path, splits: list[str]
) -> Content:
    outputs = report.files(work)
    if not report.rows_out:
        raise PipelineProblem("no_rows_left", "The pipeline dropped every row; there is nothing to record.")
    message, branch = "", "main"
    if isinstance(request.output, VersionOutput):
        message, branch = request.output.message, request.output.branch
    provenance = Provenance(
        pipeline=dump_pipeline(request.pipeline),
        pipeline_hash=report.pipeline_hash,
        # Also the further inputs, which decide what the rows are: their licences are passed on.
        inputs=list(dict.fromkeys([version.id, *(each.version for each in request.resources.values())])),
        notes={
            "rows_in": report.rows_in,
            "rows_out": report.rows_out,
            "pipeline_id": request.pipeline_id,
            "pipeline_version": request.pipeline_version,
        },
    )
    return Content(
        _named(outputs, splits),
        report.layout,
        f"Output of pipeline '{request.pipeline.name}'.",
        provenance,
        message or f"Pipeline {request.pipeline.name}",
        branch,
        "pipeline",
    )


def _named(outputs: dict[str, list[Path]], splits: list[str]) -> dict[str, list[Path]]:
    """Name a single output split after the single input split; several stay as the pipeline named them."""
    if len(outputs) == 1 and len(splits) == 1:
        return {splits[0]: next(iter(outputs.values()))}
    return outputs


def _translate(now: Progress) -> DataTaskProgress:
    return DataTaskProgress(
        phase=now.phase,
        steps=list(now.steps),
        stage=now.stage,
        stages=now.stages,
        rows_done=now.rows_done,
        rows=now.rows,
        rows_per_s=now.rows_per_s,
        eta_s=now.eta_s,
        counts={"shards_done": now.shards_done, "shards": now.shards},
    )
