"""Decides about previews and runs: what they read, where their rows go, what their report says."""

from pathlib import Path

from sqlmodel import Session
from trellis_contracts.data_tasks import DatasetVersion as VersionOf
from trellis_contracts.data_tasks import PipelineTask, PreviewTask
from trellis_contracts.pipeline import Pipeline
from trellis_data.dedup.clusters import CLUSTERS_FILE
from trellis_data.pipeline.report import RunReport

from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service as data_tasks
from trellis_api.data_tasks.models import DataTask
from trellis_api.data_tasks.schemas import DataTaskRead, Purpose
from trellis_api.datasets import versions
from trellis_api.datasets.models import DatasetVersion
from trellis_api.pipelines import repository, service
from trellis_api.pipelines.checking import require_runnable
from trellis_api.pipelines.errors import PipelineMissing, RayMissing, RunNotFound
from trellis_api.pipelines.needs import find_needs, judges_of
from trellis_api.pipelines.outputs import connect, hold_dataset, make_output
from trellis_api.pipelines.schemas import (
    FunnelBarRead,
    PreviewCreate,
    RunCreate,
    RunRead,
    RunReportRead,
    RunStepRead,
)

#: The runner's folder in that of the task.
RUN_FOLDER = "run"


def start_preview(session: Session, settings: Settings, *, request: PreviewCreate) -> DataTaskRead:
    """Queue a preview; everything that is wrong with the request raises here."""
    hold_dataset(session, dataset_id=request.dataset)
    version = versions.resolve(session, dataset_id=request.dataset, revision=request.version)
    resources = _resolve(session, request.resources)
    judges = judges_of(request.pipeline, request.judges)
    needs = find_needs(
        session, settings, tokenizer=request.pipeline.tokenizer, judges=judges, resources=resources
    )
    require_runnable(settings, pipeline=request.pipeline, version=version, needs=needs)
    task = PreviewTask(
        pipeline=request.pipeline,
        split=versions.choose_split(version, request.split),
        rows=request.rows,
        at_random=request.at_random,
        find_changed=request.find_changed,
        judges=judges,
        max_judge_cost=request.max_judge_cost,
        resources=resources,
    )
    row = data_tasks.create(session, request=task, dataset_id=version.dataset_id, version_id=version.id)
    return data_tasks.present(session, row)


def start_run(session: Session, settings: Settings, *, request: RunCreate) -> RunRead:
    """Queue a run; everything that is wrong with the request raises here."""
    pipeline, number = _find_pipeline(session, request)
    if request.executor == "ray" and settings.ray_address is None:
        raise RayMissing("No Ray cluster is configured (TRELLIS_RAY_ADDRESS). Use processes instead.")
    source = hold_dataset(session, dataset_id=request.dataset)
    version = versions.resolve(session, dataset_id=request.dataset, revision=request.version)
    splits = request.splits and [
        versions.choose_split(version, name) for name in dict.fromkeys(request.splits)
    ]
    resources = _resolve(session, request.resources)
    judges = judges_of(pipeline, request.judges)
    needs = find_needs(session, settings, tokenizer=pipeline.tokenizer, judges=judges, resources=resources)
    require_runnable(settings, pipeline=pipeline, version=version, needs=needs)
    output, made = make_output(session, request.output, source=source, version=version, made_by="pipeline")
    task = PipelineTask(
        pipeline=pipeline,
        pipeline_id=request.pipeline_id,
        pipeline_version=number,
        splits=splits,
        output=output,
        judges=judges,
        max_judge_cost=request.max_judge_cost,
        resources=resources,
        executor=request.executor,
    )
    row = data_tasks.create(
        session, request=task, dataset_id=source.id, version_id=version.id, purpose=request.purpose
    )
    connect(session, made, row)
    return present(session, settings, row)


def get_run(session: Session, *, task_id: str) -> DataTask:
    """Return the task of a run; 404 if there is none."""
    task = repository.find_run(session, task_id=task_id)
    if task is None:
        raise RunNotFound(f"Run '{task_id}' not found.")
    return task


def list_page(
    session: Session,
    settings: Settings,
    *,
    dataset: str | None,
    version: str | None,
    pipeline: str | None,
    purposes: list[Purpose] | None,
    cursor: str | None,
    limit: int,
) -> Page[RunRead]:
    """List one page without reports, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_runs(
        session,
        dataset=dataset,
        version=version,
        pipeline=pipeline,
        purposes=purposes,
        after=after,
        limit=limit + 1,
    )
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(
        items=[present(session, settings, row, with_report=False) for row in shown], next_cursor=next_cursor
    )


def present(session: Session, settings: Settings, task: DataTask, *, with_report: bool = True) -> RunRead:
    """Present a run as clients read it; of the task's result, only the report is shown."""
    request = PipelineTask.model_validate(task.request)
    report = report_of(task) if with_report else None
    return RunRead(
        task=data_tasks.present(session, task, with_result=False),
        pipeline=request.pipeline,
        pipeline_id=request.pipeline_id,
        pipeline_version=request.pipeline_version,
        splits=request.splits,
        output=request.output.model_dump(mode="json"),
        report=_show(report, run_folder(settings, task)) if report is not None else None,
    )


def report_of(task: DataTask) -> RunReport | None:
    """Return the report of a run, once it has succeeded."""
    return RunReport.model_validate(task.result) if task.result is not None else None


def run_folder(settings: Settings, task: DataTask) -> Path:
    """Return the folder that the paths of a report are relative to."""
    return settings.data_task_dir(task.id) / RUN_FOLDER


def _find_pipeline(session: Session, request: RunCreate) -> tuple[Pipeline, int | None]:
    """Return the pipeline to run, and the number of its version if it is a saved one."""
    if (request.pipeline is None) == (request.pipeline_id is None):
        raise PipelineMissing("Provide either 'pipeline' or 'pipeline_id'.")
    if request.pipeline is not None:
        if request.pipeline_version is not None:
            raise PipelineMissing("'pipeline_version' requires 'pipeline_id'.")
        return request.pipeline, None
    row = service.get_pipeline(session, pipeline_id=request.pipeline_id or "")
    version = service.get_version(session, row, number=request.pipeline_version)
    return service.document_of(row, version), version.number


def _resolve(session: Session, resources: dict[str, VersionOf]) -> dict[str, VersionOf]:
    """Resolve the versions to full IDs: a branch may move before the run begins."""
    found: dict[str, VersionOf] = {}
    for name, wanted in resources.items():
        hold_dataset(session, dataset_id=wanted.dataset_id)
        row: DatasetVersion = versions.resolve(session, dataset_id=wanted.dataset_id, revision=wanted.version)
        found[name] = VersionOf(dataset_id=row.dataset_id, version=row.id)
    return found


def _show(report: RunReport, folder: Path) -> RunReportRead:
    return RunReportRead(
        rows_in=report.rows_in,
        rows_out=report.rows_out,
        funnel=[FunnelBarRead(step=bar.step, rows=bar.rows) for bar in report.funnel],
        steps=[
            RunStepRead(
                **step.model_dump(),
                has_dropped=(path := dropped_path(report, step.name, folder)) is not None and path.is_file(),
                has_clusters=(path := clusters_path(report, step.name, folder)) is not None
                and path.is_file(),
            )
            for step in report.steps
        ],
        outputs={split: output.rows for split, output in report.outputs.items()},
        seconds=report.seconds,
        peak_memory_bytes=report.peak_memory_bytes,
    )


def dropped_path(report: RunReport, step: str, folder: Path) -> Path | None:
    """Return the file of the rows that a step dropped, if it was kept."""
    return folder / report.dropped[step] if step in report.dropped else None


def clusters_path(report: RunReport, step: str, folder: Path) -> Path | None:
    """Return the file of the clusters that a step found, if there is one."""
    return folder / report.reduced[step] / CLUSTERS_FILE if step in report.reduced else None
