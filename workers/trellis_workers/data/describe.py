"""What the child needs to know of a task, read from the database."""

import os
import sys

from sqlmodel import Session
from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets.errors import DatasetNotFound
from trellis_api.datasets.models import DatasetRef
from trellis_api.datasets.paths import local_source
from trellis_api.datasets.repository import find_dataset
from trellis_api.datasets.store import open_store
from trellis_api.generations.slots import check_slots
from trellis_api.models.tried_templates import require_tried_templates
from trellis_api.pipelines.needs import find_model_folder, find_needs
from trellis_api.uploads import storage as uploads
from trellis_contracts.data_tasks import (
    DatasetOutput,
    GenerateTask,
    ImportTask,
    Needs,
    PathSource,
    PipelineTask,
    PreviewTask,
    StatisticsTask,
    TaskRequest,
    TokensTask,
    UploadSource,
    VersionOutput,
)
from trellis_data.reading.sources import SourceUnavailable

from trellis_workers.data.files import ChildTask, SourcePlace


class UploadGone(DomainError):
    """The file that was uploaded is no longer there."""

    status = 409
    code = "upload_gone"


class SourceGone(DomainError):
    """The path under the data root is no longer there, or may not be read."""

    status = 409
    code = "source_missing"


def describe(session: Session, settings: Settings, task: DataTask) -> ChildTask:
    """Describe the task with all paths that it needs; raises ``DomainError`` if a part of it was deleted."""
    dataset = find_dataset(session, dataset_id=task.dataset_id)
    if dataset is None:
        raise DatasetNotFound("Its dataset was deleted.")
    request = service.request_of(task)
    if isinstance(request, GenerateTask):
        check_slots(session, settings, slots=request.slots, held=request.slots)
    target, branch = _target(task, request)
    return ChildTask(
        task_id=task.id,
        request=request,
        store=str(open_store(settings).root),
        data_root=str(settings.data_root),
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        version=task.version_id,
        target_id=target,
        tip=_tip(session, target, branch),
        source=_source(settings, request),
        model_dir=_model_dir(session, settings, request),
        job_python=str(settings.job_python or sys.executable),
        platform=settings.resolved_platform,
        needs=_needs(session, settings, request),
        processes=settings.data_processes or os.cpu_count(),
        ray_address=settings.ray_address,
        nice=0 if request.kind in service.INTERACTIVE else settings.data_nice,
    )


def _target(task: DataTask, request: TaskRequest) -> tuple[str | None, str | None]:
    """Return the dataset and branch that rows go to, if they go anywhere."""
    if isinstance(request, ImportTask):
        return task.dataset_id, request.branch
    output = getattr(request, "output", None)
    if isinstance(output, VersionOutput):
        return task.dataset_id, output.branch
    if isinstance(output, DatasetOutput):
        return output.dataset_id, "main"
    return None, None


def _needs(session: Session, settings: Settings, request: TaskRequest) -> Needs:
    """Find the judges, further inputs and the tokenizer that a pipeline or a generation names."""
    if isinstance(request, StatisticsTask):
        found = find_needs(session, settings, tokenizer=request.model, judges=[], resources={})
    elif isinstance(request, PipelineTask | PreviewTask):
        found = find_needs(
            session,
            settings,
            tokenizer=request.pipeline.tokenizer,
            judges=request.judges,
            resources=request.resources,
            max_judge_cost=request.max_judge_cost,
        )
    elif isinstance(request, GenerateTask):
        found = find_needs(
            session,
            settings,
            tokenizer=None,
            judges=request.judges,
            resources={},
            max_judge_cost=request.max_judge_cost,
        )
    else:
        return Needs()
    return found


def _model_dir(session: Session, settings: Settings, request: TaskRequest) -> str | None:
    model = request.model if isinstance(request, TokensTask | GenerateTask) else None
    if not model:
        return None
    folder = find_model_folder(session, settings, model_id=model)
    require_tried_templates(folder)
    return str(folder)


def _tip(session: Session, target: str | None, branch: str | None) -> str | None:
    ref = session.get(DatasetRef, (target, branch)) if target and branch else None
    return ref.version_id if ref else None


def _source(settings: Settings, request: TaskRequest) -> SourcePlace | None:
    if not isinstance(request, ImportTask):
        return None
    if isinstance(request.source, UploadSource):
        upload = uploads.find_complete(settings, request.source.upload)
        if upload is None:
            raise UploadGone("The uploaded file no longer exists; upload it again.")
        return SourcePlace(
            path=str(upload.path),
            name=upload.filename,
            sha256=upload.sha256,
            size_bytes=upload.size_bytes,
        )
    if isinstance(request.source, PathSource):
        try:
            local_source(settings, request.source.path)
        except SourceUnavailable as problem:
            raise SourceGone(problem.message) from problem
        path = (settings.data_root / request.source.path).resolve()
        return SourcePlace(path=str(path), name=request.source.path)
    return None
