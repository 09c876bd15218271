"""Decides what is imported: from where, under which name, and as the next version of what.

The rows themselves are read by a worker: what is asked for here is a task.
"""

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError
from sqlmodel import Session
from trellis_contracts.data_tasks import (
    HubSource,
    ImportForm,
    ImportSource,
    ImportTask,
    Mixed,
    PathSource,
    S3Source,
    UploadSource,
)
from trellis_data.reading.kinds import PACKED_SUFFIXES
from trellis_data.reading.sources import SourceUnavailable

from trellis_api.core.columns import utc_now
from trellis_api.core.redaction import has_secret
from trellis_api.core.settings import Settings
from trellis_api.core.texts import MAX_NAME_CHARACTERS, Description, Licence, Name
from trellis_api.data_tasks import service as tasks_service
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import repository, service, versions
from trellis_api.datasets.errors import DatasetNotReady, SourceUnfit, VersionNotFound
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.paths import local_source
from trellis_api.datasets.schemas import DatasetOrigin, ImportCreate, ImportMore
from trellis_api.datasets.states import DatasetState
from trellis_api.datasets.upload import ReceivedForm
from trellis_api.uploads import storage
from trellis_api.uploads.errors import UploadMalformed

_NAME: TypeAdapter[str] = TypeAdapter(Name)
_DESCRIPTION: TypeAdapter[str] = TypeAdapter(Description)
_LICENCES: TypeAdapter[list[str]] = TypeAdapter(list[Licence])
_UNNAMED = "dataset"


def import_form(session: Session, settings: Settings, form: ReceivedForm) -> tuple[Dataset, DataTask]:
    """Create a dataset from a file that was sent in one request."""
    request = _request_of(form)
    return import_new(session, request, find_origin(settings, request.source))


def import_new(
    session: Session, request: ImportCreate, origin: DatasetOrigin, *, form: ImportForm = "plain"
) -> tuple[Dataset, DataTask]:
    """Create a dataset for a worker to fill, and the task that does so."""
    name = request.name or _default_name(origin)
    dataset = service.add_creating(
        session,
        name=name,
        description=request.description,
        source=origin,
        is_default_name=request.name is None,
    )
    order = _task(request.source, request.mixed).model_copy(update={"form": form})
    task = tasks_service.create(session, request=order, dataset_id=dataset.id)
    dataset.task_id = task.id
    dataset.licences = list(dict.fromkeys(request.licences))
    repository.add_dataset(session, dataset)
    return dataset, task


def import_more(session: Session, *, dataset_id: str, request: ImportMore, origin: DatasetOrigin) -> DataTask:
    """Import rows for the next version of a dataset, or for its first one if that failed."""
    repository.lock_dataset(session, dataset_id=dataset_id)
    dataset = service.get_dataset(session, dataset_id=dataset_id)
    if dataset.state == DatasetState.CREATING:
        raise DatasetNotReady(f"'{dataset.name}' is still being created. Wait for its first version.")
    tip = versions.find_tip(session, dataset_id=dataset_id, branch=request.branch)
    is_first = dataset.head is None
    if tip is None and not (is_first and request.branch == "main"):
        raise VersionNotFound(f"'{dataset.name}' has no branch '{request.branch}'.")
    order = _task(request.source, request.mixed).model_copy(
        update={"mode": request.mode, "branch": request.branch, "message": request.message}
    )
    task = tasks_service.create(session, request=order, dataset_id=dataset_id, version_id=tip)
    if is_first:
        dataset.state, dataset.task_id = DatasetState.CREATING, task.id
        dataset.source, dataset.updated_at = origin.model_dump(mode="json"), utc_now()
        repository.add_dataset(session, dataset)
    return task


def _task(source: ImportSource, mixed: Mixed) -> ImportTask:
    return ImportTask(source=source, mixed=mixed)


def _request_of(form: ReceivedForm) -> ImportCreate:
    try:
        asked = form.fields.get("name")
        name = _NAME.validate_python(asked) if asked else None
    except ValidationError as error:
        raise UploadMalformed("name: must be 1 to 120 printable characters.") from error
    try:
        description = _DESCRIPTION.validate_python(form.fields.get("description", ""))
    except ValidationError as error:
        raise UploadMalformed("description: at most 2000 characters, without NUL.") from error
    try:
        licences = _LICENCES.validate_python(form.lists.get("licences", []))
    except ValidationError as error:
        raise UploadMalformed("licences: each must be 1 to 120 characters, without NUL.") from error
    source = UploadSource(upload=form.upload.id)
    return ImportCreate(name=name, description=description, licences=licences, source=source)


def find_origin(settings: Settings, source: ImportSource) -> DatasetOrigin:
    """Return what is known of a source before it is read; raise if it cannot be read.

    Call it before the transaction: it may look through a folder.
    """
    match source:
        case UploadSource():
            found = storage.require_complete(settings, source.upload)
            return DatasetOrigin(
                kind="upload",
                name=found.filename or source.upload,
                size_bytes=found.size_bytes,
                sha256=found.sha256,
            )
        case PathSource():
            return DatasetOrigin(kind="path", name=source.path, size_bytes=_size_of(settings, source.path))
        case HubSource():
            name = f"modelscope:{source.repo_id}" if source.hub == "modelscope" else source.repo_id
            return DatasetOrigin(kind="hub", name=name, revision=source.revision)
        case S3Source():
            _refuse_credentials(source.url)
            return DatasetOrigin(kind="s3", name=source.url)


def _refuse_credentials(url: str) -> None:
    """Refuse an address with credentials: it is stored and shown. (The message does not repeat it.)"""
    bucket = url.removeprefix("s3://").partition("/")[0]
    is_plain = bucket.startswith("arn:") or not {"@", ":"} & set(bucket)
    if not is_plain or has_secret(url):
        message = "The URL contains credentials. Remove them; the workers use their own keys."
        details = {"code": "source_with_credentials", "field": "source.url", "message": message}
        raise SourceUnfit(message, [details])


def _size_of(settings: Settings, path: str) -> int | None:
    try:
        files = local_source(settings, path).list_files()
    except (SourceUnavailable, OSError) as error:
        message = error.message if isinstance(error, SourceUnavailable) else "The path cannot be read."
        code = error.code if isinstance(error, SourceUnavailable) else "source_missing"
        raise SourceUnfit(message, [{"code": code, "field": "source.path", "message": message}]) from error
    if not files:
        message = f"'{path[:200]}' contains no JSONL, JSON, CSV, Parquet or Arrow file."
        raise SourceUnfit(message, [{"code": "source_no_rows", "field": "source.path", "message": message}])
    return sum(file.size_bytes or 0 for file in files)


def _default_name(origin: DatasetOrigin) -> str:
    """Derive a name from the source: a file without its suffixes, a folder, or the last part of a URL."""
    path = urlsplit(origin.name).path if origin.kind == "s3" else origin.name
    last = PurePosixPath(path.strip("/") or _UNNAMED)
    if origin.kind != "hub":
        last = last.with_suffix("") if last.suffix.lower() in PACKED_SUFFIXES else last
    stem = last.name if origin.kind == "hub" else last.stem
    printable = "".join(each for each in stem if each.isprintable() and each != "\x7f").strip()
    return printable[:MAX_NAME_CHARACTERS].strip() or _UNNAMED
