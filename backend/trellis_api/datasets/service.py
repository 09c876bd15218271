"""Decides about datasets: what is taken in, shown and removed.

An upload becomes a dataset in three moves, so that no transaction is open while
a large file is read: ``check_name`` (read), ``prepare`` (no database), ``add``
(write; publishes the file by a rename in the same breath as the row).
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session
from trellis_data.reading.problems import UnreadableFile

from trellis_api.core.hashing import hash_file
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.core.texts import Description, Name
from trellis_api.core.transaction_files import remove_after_commit, remove_unless_committed
from trellis_api.datasets import repository
from trellis_api.datasets.errors import (
    DatasetFileInvalid,
    DatasetFileMissing,
    DatasetInUse,
    DatasetNameTaken,
    DatasetNotFound,
    DatasetRowsInvalid,
    UploadMalformed,
)
from trellis_api.datasets.intake.convert import Converted, convert
from trellis_api.datasets.intake.problems import BadRows, as_details
from trellis_api.datasets.intake.store import read_page
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.schemas import ColumnRead, DatasetRead, DatasetRows
from trellis_api.datasets.upload import Upload, explain_disk_error
from trellis_api.jobs.repository import names_of_jobs_using

log = logging.getLogger(__name__)
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_DESCRIPTION: TypeAdapter[str] = TypeAdapter(Description)
_DATA_FILE = "data.parquet"


@dataclass(frozen=True)
class Intake:
    """An upload whose rows are checked and written, but which is no dataset yet."""

    name: str
    description: str
    upload: Upload
    converted: Converted
    source_sha256: str

    @property
    def path(self) -> Path:
        """The Parquet file, still among the uploads."""
        return self.upload.folder / _DATA_FILE


def get_dataset(session: Session, *, dataset_id: str) -> Dataset:
    """The dataset; 404 where there is none."""
    dataset = repository.find_dataset(session, dataset_id=dataset_id)
    if dataset is None:
        raise DatasetNotFound(f"There is no dataset '{dataset_id}'.")
    return dataset


def list_page(session: Session, *, text: str | None, cursor: str | None, limit: int) -> Page[DatasetRead]:
    """One page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_datasets(session, text=text, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=[DatasetRead.model_validate(row) for row in shown], next_cursor=next_cursor)


def check_name(session: Session, upload: Upload) -> str:
    """The name that the dataset will have; refused before the file is read where it is taken."""
    try:
        name = _NAME.validate_python(upload.fields.get("name") or Path(upload.filename).stem)
    except ValidationError as error:
        raise UploadMalformed("name: 1 to 120 printable characters are needed.") from error
    if repository.find_dataset_named(session, name=name):
        raise _name_taken(name)
    return name


def prepare(upload: Upload, *, name: str) -> Intake:
    """Check all rows and write them as Parquet beside the upload."""
    try:
        description = _DESCRIPTION.validate_python(upload.fields.get("description", ""))
    except ValidationError as error:
        raise UploadMalformed("description: at most 2000 characters, without NUL.") from error
    try:
        converted = convert(upload.path, upload.filename, upload.folder / _DATA_FILE)
    except UnreadableFile as error:
        raise DatasetFileInvalid(error.message, {"code": error.code, **error.details}) from error
    except BadRows as error:
        details = {
            "problems": [as_details(problem) for problem in error.problems],
            "is_complete": error.is_complete,
        }
        raise DatasetRowsInvalid(f"No row was taken: {error.problems[0].describe()}.", details) from error
    except OSError as error:
        raise explain_disk_error(error) from error
    return Intake(name, description, upload, converted, hash_file(upload.path))


def add(session: Session, settings: Settings, intake: Intake) -> Dataset:
    """Insert the row and move the file to its place; a rollback takes the file away again."""
    converted = intake.converted
    dataset_id = new_id("ds")
    folder = settings.data_root / "datasets" / dataset_id
    dataset = Dataset(
        id=dataset_id,
        name=intake.name,
        description=intake.description,
        path=f"datasets/{dataset_id}/{_DATA_FILE}",
        format=converted.detection.format.value,
        format_reason=converted.detection.reason,
        format_columns=converted.detection.columns,
        row_count=converted.row_count,
        columns=converted.columns,
        warnings=converted.warnings,
        size_bytes=converted.size_bytes,
        sha256=converted.sha256,
        source_filename=intake.upload.filename,
        source_kind=converted.kind.value,
        source_encoding=converted.encoding,
        source_size_bytes=intake.upload.size_bytes,
        source_sha256=intake.source_sha256,
    )
    try:
        repository.add_dataset(session, dataset)
    except IntegrityError as error:
        raise _name_taken(intake.name) from error
    remove_unless_committed(session, folder)
    folder.mkdir(parents=True)
    intake.path.rename(folder / _DATA_FILE)
    log.info("dataset %s: %d rows of %s", dataset_id, converted.row_count, converted.detection.format)
    return dataset


def read_rows(
    session: Session, settings: Settings, *, dataset_id: str, offset: int, limit: int
) -> DatasetRows:
    """A window of rows."""
    dataset = get_dataset(session, dataset_id=dataset_id)
    try:
        rows = read_page(settings.data_root / dataset.path, offset=offset, limit=limit)
    except (OSError, pa.ArrowException) as error:
        log.error("dataset %s cannot be read: %s", dataset_id, error)
        raise DatasetFileMissing("The dataset's file is missing or damaged.") from error
    columns = [ColumnRead.model_validate(column) for column in dataset.columns]
    return DatasetRows(offset=offset, row_count=dataset.row_count, columns=columns, rows=rows)


def delete(session: Session, settings: Settings, *, dataset_id: str) -> None:
    """Delete the row, and the files once that is committed; refused while an unfinished job reads them."""
    # Locked before the jobs are looked at: a job that is being created holds it, and is seen afterwards.
    repository.lock_dataset(session, dataset_id=dataset_id)
    dataset = get_dataset(session, dataset_id=dataset_id)
    jobs = names_of_jobs_using(session, dataset_id=dataset_id)
    if jobs:
        raise DatasetInUse(
            f"The dataset is used by {len(jobs)} unfinished job{'s' if len(jobs) > 1 else ''}.",
            {"jobs": jobs},
        )
    repository.delete_dataset(session, dataset)
    remove_after_commit(session, settings.data_root / "datasets" / dataset_id)


def _name_taken(name: str) -> DatasetNameTaken:
    return DatasetNameTaken(f"There is a dataset named '{name}' already.", {"name": name})
