"""Files for fine-tuning: each is an upload that is kept, and a dataset that a worker makes of it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from sqlmodel import Session
from trellis_contracts.data_tasks import UploadSource

from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.core.transaction_files import remove_after_commit
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import imports
from trellis_api.datasets import repository as datasets
from trellis_api.datasets import service as datasets_service
from trellis_api.datasets.errors import DatasetInUse, DatasetNotFound
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.schemas import ImportCreate
from trellis_api.datasets.states import DatasetState
from trellis_api.datasets.upload import ReceivedForm
from trellis_api.fine_tuning import repository
from trellis_api.fine_tuning.errors import FileNotFound, FineTuningRefused, InvalidFile, PurposeUnsupported
from trellis_api.fine_tuning.models import OpenAiFile
from trellis_api.fine_tuning.schemas import FileObject
from trellis_api.uploads import storage

PURPOSE = "fine-tune"
#: Fields of the form; what is not supported is read too, to be refused by its own name.
FIELDS = frozenset({"purpose", "expires_after[anchor]", "expires_after[seconds]"})
_STATUS = {DatasetState.READY: "processed", DatasetState.FAILED: "error"}


def check_form(form: ReceivedForm) -> None:
    """Check the form's purpose; raises for unknown ones and for fields that are not supported."""
    purpose = form.fields.get("purpose")
    if purpose != PURPOSE:
        given = f"'{purpose}'" if purpose else "none"
        raise PurposeUnsupported(
            f"purpose: files are kept for 'fine-tune' alone, and {given} was given.", {"param": "purpose"}
        )
    if any(name.startswith("expires_after") for name in form.fields):
        raise FineTuningRefused(
            "expires_after: files stay until they are deleted; leave it out.", {"param": "expires_after"}
        )
    if not form.size_bytes:
        raise InvalidFile("file: the file is empty.", {"param": "file"})


def add(session: Session, settings: Settings, form: ReceivedForm) -> tuple[OpenAiFile, DataTask]:
    """Keep a file and ask a worker for its rows."""
    check_form(form)
    source = UploadSource(upload=form.upload.id)
    row = OpenAiFile(
        id=new_file_id(),
        upload_id=form.upload.id,
        dataset_id="",
        filename=form.filename or "file",
        purpose=PURPOSE,
        size_bytes=form.size_bytes,
    )
    request = ImportCreate(description=f"Uploaded for fine-tuning as {row.id}.", source=source)
    origin = imports.find_origin(settings, source)
    dataset, task = imports.import_new(session, request, origin, form="openai")
    row.dataset_id = dataset.id
    repository.add(session, row)
    return row, task


def get_file(session: Session, *, file_id: str) -> OpenAiFile:
    """Return the file; ``FileNotFound`` without one."""
    row = repository.find_file(session, file_id=file_id)
    if row is None:
        raise FileNotFound(file_id)
    return row


def delete(session: Session, settings: Settings, *, file_id: str) -> None:
    """Forget a file and its rows; refused while something that is not finished reads them."""
    row = get_file(session, file_id=file_id)
    if users := repository.list_uses(session, file_id=file_id):
        raise DatasetInUse(f"The file is used by {', '.join(users)}.", {"jobs": users})
    with suppress(DatasetNotFound):  # a person may have deleted the rows already
        datasets_service.delete(session, settings, dataset_id=row.dataset_id)
    repository.forget_file(session, row)
    remove_after_commit(session, storage.locate(settings, row.upload_id))


def find_dataset(session: Session, row: OpenAiFile) -> Dataset | None:
    """Return the dataset with the rows of a file; None if a person has deleted it."""
    return datasets.find_dataset(session, dataset_id=row.dataset_id)


def present(session: Session, row: OpenAiFile) -> FileObject:
    """Present a file as clients see it."""
    return present_many(session, [row])[0]


def present_many(session: Session, rows: Sequence[OpenAiFile]) -> list[FileObject]:
    """Present files as clients see them; the number of queries does not depend on how many there are."""
    found = repository.map_datasets(session, rows)
    failed = [each.task_id for each in found.values() if each.state == DatasetState.FAILED and each.task_id]
    reasons = {
        task.id: task.reason
        for some in repository.batched(failed)
        for task in datasets.list_tasks_of_ids(session, task_ids=some)
    }
    return [_describe(row, found.get(row.dataset_id), reasons) for row in rows]


def _describe(row: OpenAiFile, dataset: Dataset | None, reasons: Mapping[str, str | None]) -> FileObject:
    state = dataset.state if dataset else DatasetState.FAILED
    return FileObject(
        id=row.id,
        bytes=row.size_bytes,
        created_at=int(row.created_at.timestamp()),
        filename=row.filename,
        purpose=row.purpose,
        status=_STATUS.get(DatasetState(state), "uploaded"),
        status_details=_explain(dataset, reasons),
    )


def explain(session: Session, dataset: Dataset | None) -> str | None:
    """Explain why the rows of a file can't be trained on; None if they can, or are still being read."""
    tasks = [] if dataset is None else datasets.list_tasks_of_ids(session, task_ids=[dataset.task_id or ""])
    return _explain(dataset, {task.id: task.reason for task in tasks})


def _explain(dataset: Dataset | None, reasons: Mapping[str, str | None]) -> str | None:
    if dataset is None:
        return "The rows of the file were deleted."
    if dataset.state != DatasetState.FAILED:
        return None
    return reasons.get(dataset.task_id or "") or "The file could not be read."


def new_file_id() -> str:
    """Make a file id in the form that OpenAI's clients expect."""
    return new_id("file").replace("_", "-")
