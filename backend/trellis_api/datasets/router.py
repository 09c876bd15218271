"""``/datasets``: import, list, look at and remove."""

from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Depends, Query, Response
from fastapi.responses import FileResponse, StreamingResponse

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.core.renamed_query import renamed_flag
from trellis_api.core.texts import NO_NUL, QueryText
from trellis_api.data_tasks import service as tasks_service
from trellis_api.data_tasks.schemas import DataTaskRead
from trellis_api.data_tasks.service import message_for
from trellis_api.datasets import (
    download,
    given_rows,
    imports,
    quarantine,
    samples,
    service,
    statistics,
    version_pages,
)
from trellis_api.datasets.schemas import (
    DatasetChange,
    DatasetRead,
    DatasetRows,
    FoundRows,
    ImportCreate,
    ImportMore,
    QuarantineRead,
    RowsAdd,
    RowsCreate,
    RowSearch,
    SampleDatasetList,
    StatisticsCreate,
    StatisticsRead,
    TokensCreate,
)
from trellis_api.datasets.upload import UPLOAD_FORM, FormDep

router = APIRouter(prefix="/datasets", tags=["datasets"], responses=ERROR_RESPONSES)

RevisionQuery = Annotated[
    str | None, Query(max_length=100, pattern=NO_NUL, description="Version, branch or tag; default main.")
]
SplitQuery = Annotated[
    str | None, Query(max_length=100, pattern=NO_NUL, description="Default train, or the only one.")
]
Offset = Annotated[int, Query(ge=0, le=2**62)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]


@router.get("")
def list_datasets(
    session: ReadSession,
    text: Annotated[QueryText | None, Query(description="Part of a name or description.")] = None,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
    limit: Limit = DEFAULT_PAGE_SIZE,
) -> Page[DatasetRead]:
    """List datasets, newest first."""
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
def create_dataset(
    form: FormDep,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DatasetRead:
    """Upload a file in one request; a worker reads its rows (``state`` becomes ready)."""
    with database.write() as session:
        dataset, task = imports.import_form(session, settings, form)
        found = service.present(session, dataset)
    form.is_kept = True
    tasks.send_later(background, message_for(task))
    return found


@router.post("/imports", status_code=201)
def import_dataset(
    request: ImportCreate,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DatasetRead:
    """Create a dataset from a finished upload, a path under the data root, a hub or S3.

    A worker reads its rows.
    """
    origin = imports.find_origin(settings, request.source)
    with database.write() as session:
        dataset, task = imports.import_new(session, request, origin)
        found = service.present(session, dataset)
    tasks.send_later(background, message_for(task))
    return found


@router.post("/rows", status_code=201)
def create_dataset_of_rows(
    request: RowsCreate,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DatasetRead:
    """Create a dataset from conversations or preference pairs in the request."""
    upload = given_rows.write_given(settings, request.rows)
    with given_rows.importing(settings, upload) as (source, origin), database.write() as session:
        wanted = ImportCreate(name=request.name, description=request.description, source=source)
        dataset, task = imports.import_new(session, wanted, origin)
        found = service.present(session, dataset)
    tasks.send_later(background, message_for(task))
    return found


@router.get("/samples")
def list_samples(session: ReadSession) -> SampleDatasetList:
    """List the sample datasets: small tasks to try the platform with."""
    return samples.list_all(session)


@router.post(
    "/samples/{sample_name}",
    status_code=201,
    responses={200: {"model": DatasetRead, "description": "Already added; this is its dataset"}},
)
def add_sample(
    sample_name: str,
    response: Response,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DatasetRead:
    """Add a sample dataset, once; a worker reads its rows."""
    sample = samples.get_sample(sample_name)
    with database.read() as session:
        if (added := samples.find_added(session, sample)) is not None:
            response.status_code = 200
            return service.present(session, added)
    upload = samples.write(settings, sample)
    with given_rows.importing(settings, upload) as (source, origin), database.write() as session:
        samples.lock(session)
        if (added := samples.find_added(session, sample)) is not None:  # somebody else's request was faster
            upload.remove()
            response.status_code = 200
            return service.present(session, added)
        wanted = ImportCreate(description=sample.description.en, source=source)
        dataset, task = samples.add(session, sample, wanted, origin)
        found = service.present(session, dataset)
    tasks.send_later(background, message_for(task))
    return found


@router.get("/{dataset_id}")
def read_dataset(dataset_id: str, session: ReadSession) -> DatasetRead:
    """Return one dataset."""
    return service.present(session, service.get_dataset(session, dataset_id=dataset_id))


@router.patch("/{dataset_id}")
def change_dataset(dataset_id: str, request: DatasetChange, session: WriteSession) -> DatasetRead:
    """Rename or describe a dataset."""
    dataset = service.change(session, dataset_id=dataset_id, request=request)
    return service.present(session, dataset)


@router.delete("/{dataset_id}", status_code=204)
def delete_dataset(dataset_id: str, session: WriteSession, settings: SettingsDep) -> None:
    """Remove a dataset with all versions; refused while unfinished work uses it."""
    service.delete(session, settings, dataset_id=dataset_id)


@router.post("/{dataset_id}/imports", status_code=202)
def import_more(
    dataset_id: str,
    request: ImportMore,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DataTaskRead:
    """Import more or different rows as the next version of a branch."""
    origin = imports.find_origin(settings, request.source)
    with database.write() as session:
        task = imports.import_more(session, dataset_id=dataset_id, request=request, origin=origin)
        found = tasks_service.present(session, task)
    tasks.send_later(background, message_for(task))
    return found


@router.get("/{dataset_id}/rows")
def read_dataset_rows(
    dataset_id: str,
    session: ReadSession,
    settings: SettingsDep,
    version: RevisionQuery = None,
    split: SplitQuery = None,
    offset: Offset = 0,
    limit: Limit = DEFAULT_PAGE_SIZE,
) -> DatasetRows:
    """Return a page of rows, as JSON."""
    return version_pages.read_page(
        session, settings, dataset_id=dataset_id, revision=version, split=split, offset=offset, limit=limit
    )


@router.post("/{dataset_id}/rows", status_code=202)
def add_dataset_rows(
    dataset_id: str,
    request: RowsAdd,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DataTaskRead:
    """Add conversations or preference pairs as the next version of a branch."""
    upload = given_rows.write_given(settings, request.rows)
    with given_rows.importing(settings, upload) as (source, origin), database.write() as session:
        given_rows.check_fit(session, dataset_id=dataset_id, rows=request.rows)
        more = ImportMore(source=source, branch=request.branch, message=request.message)
        task = imports.import_more(session, dataset_id=dataset_id, request=more, origin=origin)
        found = tasks_service.present(session, task)
    tasks.send_later(background, message_for(task))
    return found


@router.post("/{dataset_id}/rows/search")
def search_dataset_rows(
    dataset_id: str, request: RowSearch, session: ReadSession, settings: SettingsDep
) -> FoundRows:
    """Return rows that match conditions and contain a text."""
    return version_pages.search(session, settings, dataset_id=dataset_id, request=request)


@router.post("/{dataset_id}/rows/tokens", status_code=202)
def tokenize_dataset_rows(
    dataset_id: str,
    request: TokensCreate,
    session: WriteSession,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> DataTaskRead:
    """Tokenize rows as for training, masked tokens marked: a task with a ``TokenView`` as result."""
    task = statistics.tokenize(session, dataset_id=dataset_id, request=request)
    tasks.send_later(background, message_for(task))
    return tasks_service.present(session, task)


@router.get("/{dataset_id}/statistics")
def read_statistics(
    dataset_id: str,
    session: ReadSession,
    settings: SettingsDep,
    version: RevisionQuery = None,
    model: Annotated[str | None, Query(max_length=32, description="Whose tokens are counted.")] = None,
) -> StatisticsRead:
    """Return the statistics of a version: those that were made with it, or computed for a model."""
    return statistics.read(session, settings, dataset_id=dataset_id, revision=version, model=model)


@router.post("/{dataset_id}/statistics", status_code=202)
def compute_statistics(
    dataset_id: str,
    request: StatisticsCreate,
    session: WriteSession,
    tasks: TasksDep,
    background: BackgroundTasks,
    refresh: Annotated[
        bool,
        Depends(renamed_flag("refresh", old="anew", description="Recompute even if cached.")),
    ],
) -> DataTaskRead:
    """Compute statistics, with lengths in a model's tokens; the task may be one that has succeeded before."""
    task, is_new = statistics.compute(session, dataset_id=dataset_id, request=request, refresh=refresh)
    if is_new:
        tasks.send_later(background, message_for(task))
    return tasks_service.present(session, task)


@router.get("/{dataset_id}/quarantine")
def read_quarantine(
    dataset_id: str,
    session: ReadSession,
    settings: SettingsDep,
    task: Annotated[str | None, Query(max_length=32, description="Import; default the newest.")] = None,
    offset: Offset = 0,
    limit: Limit = DEFAULT_PAGE_SIZE,
) -> QuarantineRead:
    """Return rows rejected by an import, each with line and reason."""
    return quarantine.read_page(
        session, settings, dataset_id=dataset_id, task_id=task, offset=offset, limit=limit
    )


@router.get("/{dataset_id}/quarantine/download", response_class=FileResponse)
def download_quarantine(
    dataset_id: str,
    session: ReadSession,
    settings: SettingsDep,
    task: Annotated[str | None, Query(max_length=32, description="Import; default the newest.")] = None,
) -> FileResponse:
    """Download all rows rejected by an import, as JSON Lines."""
    dataset = service.get_dataset(session, dataset_id=dataset_id)
    path = quarantine.find_file(session, settings, dataset_id=dataset_id, task_id=task)
    headers = {"Content-Disposition": download.disposition(f"{dataset.name}-quarantine.jsonl")}
    return FileResponse(path, media_type=download.MEDIA_TYPES["jsonl"], headers=headers)


@router.get("/{dataset_id}/download", response_class=StreamingResponse)
def download_dataset(
    dataset_id: str,
    session: ReadSession,
    settings: SettingsDep,
    version: RevisionQuery = None,
    split: SplitQuery = None,
    form: Annotated[Literal["jsonl", "csv", "parquet"], Query(description="Kind of file.")] = "jsonl",
) -> StreamingResponse:
    """Download all rows of a split as a file, streamed."""
    found = download.download(
        session, settings, dataset_id=dataset_id, revision=version, split=split, form=form
    )
    headers = {"Content-Disposition": download.disposition(found.filename)}
    return StreamingResponse(found.content, media_type=found.media_type, headers=headers)
