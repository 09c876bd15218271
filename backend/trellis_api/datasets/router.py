"""``/datasets``: upload, list, preview and remove."""

from typing import Annotated

from fastapi import APIRouter, Query

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.texts import NO_NUL
from trellis_api.datasets import service
from trellis_api.datasets.schemas import DatasetRead, DatasetRows
from trellis_api.datasets.upload import UPLOAD_FORM, UploadDep

router = APIRouter(prefix="/datasets", tags=["datasets"], responses=ERROR_RESPONSES)


@router.get("")
def list_datasets(
    session: ReadSession,
    text: Annotated[
        str | None, Query(max_length=200, pattern=NO_NUL, description="Part of a name or description.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[DatasetRead]:
    """Datasets, newest first."""
    return service.list_page(session, text=text, cursor=cursor, limit=limit)


@router.post(
    "",
    status_code=201,
    openapi_extra=UPLOAD_FORM,
    responses={
        413: {"model": ErrorBody, "description": "Larger than the limit"},
        507: {"model": ErrorBody, "description": "No room on the disk"},
    },
)
def create_dataset(upload: UploadDep, database: DatabaseDep, settings: SettingsDep) -> DatasetRead:
    """Upload JSONL, JSON, CSV or Parquet. Every row is checked; a bad row is named by its line."""
    with database.read() as session:
        name = service.check_name(session, upload)
    intake = service.prepare(upload, name=name)
    with database.write() as session:
        return DatasetRead.model_validate(service.add(session, settings, intake))


@router.get("/{dataset_id}")
def read_dataset(dataset_id: str, session: ReadSession) -> DatasetRead:
    """One dataset."""
    return DatasetRead.model_validate(service.get_dataset(session, dataset_id=dataset_id))


@router.get("/{dataset_id}/rows")
def read_dataset_rows(
    dataset_id: str,
    session: ReadSession,
    settings: SettingsDep,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> DatasetRows:
    """A window of rows, as JSON."""
    return service.read_rows(session, settings, dataset_id=dataset_id, offset=offset, limit=limit)


@router.delete("/{dataset_id}", status_code=204)
def delete_dataset(dataset_id: str, session: WriteSession, settings: SettingsDep) -> None:
    """Remove a dataset and its files; refused while an unfinished job uses it."""
    service.delete(session, settings, dataset_id=dataset_id)
