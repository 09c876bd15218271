"""Rows that a model writes, as a version; the rows of another version are its seeds."""

from typing import Any

from trellis_contracts.data_tasks import DataTaskProgress, GenerateTask, VersionOutput
from trellis_contracts.generation import Generation
from trellis_contracts.recipe import DataFormat
from trellis_data.generate.report import GenerationProgress, GenerationReport
from trellis_data.generate.run import JUDGES_FOLDER, generate
from trellis_data.layout import Layout
from trellis_data.operator import Context
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.versions.records import Provenance, Version
from trellis_data.versions.rows import files_of

from trellis_workers.data.context import make_judges
from trellis_workers.data.files import ChildTask
from trellis_workers.data.reading import read_version
from trellis_workers.data.recording import Content, record
from trellis_workers.data.served_model import KEY_VARIABLE, serving
from trellis_workers.data.tools import Tools

#: In the task's folder: rows, replies and what they cost, from which a task goes on.
FOLDER = "run"


def carry_out(task: ChildTask, tools: Tools) -> dict[str, Any]:
    """Ask what has no reply yet, and add the rows that came of it as a version."""
    request = task.request
    if not isinstance(request, GenerateTask):
        raise TypeError(f"{request.kind} is no generation")
    store, version = read_version(task)
    settings = request.generation
    if task.model_dir is not None:
        endpoint = settings.endpoint.model_copy(update={"key_variable": KEY_VARIABLE})
        settings = settings.model_copy(update={"endpoint": endpoint})
    work = tools.folder / FOLDER
    with serving(task, tools) as address:
        report = generate(
            settings,
            files_of(store, version)[request.split],
            work,
            layout=store.tree(version.commit.tree).layout,
            context=Context(scorers=make_judges(task.needs, work / JUDGES_FOLDER)),
            address=address,
            on_progress=lambda now: tools.tell(_translate(now)),
        )
    if not report.rows:
        raise PipelineProblem("no_rows_made", f"No rows were generated: {_say_why(report)}.")
    record(task, tools, _content(request, settings, report, version, tools))
    return report.model_dump(mode="json")


def _content(
    request: GenerateTask, settings: Generation, report: GenerationReport, version: Version, tools: Tools
) -> Content:
    message, branch = "", "main"
    if isinstance(request.output, VersionOutput):
        message, branch = request.output.message, request.output.branch
    # Neither address nor variable of a key: versions are shown to everybody.
    asked = settings.model_dump(mode="json", exclude={"endpoint", "concurrency", "retries"})
    provenance = Provenance(
        inputs=[version.id],
        notes={
            "generation": asked,
            "model": report.model,
            "template_hash": report.template_hash,
            "questions": report.questions,
            "rows": report.rows,
            "dropped": report.dropped,
            "cost": report.cost,
            "judge_cost": report.judge_cost,
            "stopped": report.stopped,
        },
    )
    rows = tools.folder / FOLDER / "output" / "train"
    return Content(
        {"train": [rows / name for name in report.shards]},
        Layout(DataFormat.MESSAGES, {"messages": "messages"}),
        "Generated rows are conversations.",
        provenance,
        message or f"Generate {settings.name}",
        branch,
        "generate",
    )


def _say_why(report: GenerationReport) -> str:
    reasons = {**report.problems, **report.dropped}
    if report.stopped == "cost_bound":
        return "the cost limit is too low for a single row"
    return ", ".join(f"{reason} {count:,}" for reason, count in reasons.items()) or "there were no seed rows"


def _translate(now: GenerationProgress) -> DataTaskProgress:
    return DataTaskProgress(
        phase="ask",
        rows_done=now.done,
        rows=now.total,
        counts={"made": now.rows, "calls": now.calls, "cost": now.cost, "max_cost": now.max_cost},
    )
