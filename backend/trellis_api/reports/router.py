"""``/reports``: evaluations written down as Markdown, HTML and PDF."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Path, Query
from fastapi.responses import FileResponse
from trellis_contracts.tasks import TIDY_EVALUATIONS, WRITE_REPORTS

from trellis_api.core.dependencies import ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.core.ids import id_pattern
from trellis_api.core.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Page
from trellis_api.datasets.download import disposition
from trellis_api.reports import presentation, service
from trellis_api.reports.schemas import ReportCreate, ReportFormat, ReportRead

router = APIRouter(prefix="/reports", tags=["reports"], responses={401: ERROR_RESPONSES[401]})
Responses = dict[int | str, dict[str, Any]]
FOUND: Responses = {404: ERROR_RESPONSES[404]}
CONFLICT: Responses = {**FOUND, 409: ERROR_RESPONSES[409]}
ReportId = Annotated[str, Path(description="ID or name of the report.")]
MEDIA_TYPES: dict[ReportFormat, str] = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "pdf": "application/pdf",
}


@router.post(
    "",
    status_code=201,
    summary="Write a report",
    responses={409: ERROR_RESPONSES[409], 422: ERROR_RESPONSES[422]},
)
def create_report(
    body: ReportCreate, background: BackgroundTasks, session: WriteSession, tasks: TasksDep
) -> ReportRead:
    """Create a report. A worker writes the files; read the report until it is ready."""
    report = service.create(session, request=body)
    tasks.send_later(background, WRITE_REPORTS)
    return presentation.present(session, report=report)


@router.get("", summary="List reports, newest first")
def list_reports(
    session: ReadSession,
    evaluation: Annotated[
        str | None, Query(pattern=id_pattern("ev"), description="That this evaluation is part of.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE,
) -> Page[ReportRead]:
    """List all reports, or those of an evaluation."""
    return service.list_page(session, evaluation_id=evaluation, cursor=cursor, limit=limit)


@router.get("/{report_id}", summary="Read a report", responses=FOUND)
def read_report(report_id: ReportId, session: ReadSession) -> ReportRead:
    """Return a report's state and files."""
    return presentation.present(session, report=service.get_report(session, report_id=report_id))


@router.get(
    "/{report_id}/file",
    summary="Download a report",
    response_class=FileResponse,
    responses={
        200: {"description": "The file.", "content": {media: {} for media in MEDIA_TYPES.values()}},
        **FOUND,
    },
)
def read_report_file(
    report_id: ReportId,
    kind: Annotated[ReportFormat, Query(alias="format", description="md, html or pdf.")],
    session: ReadSession,
    settings: SettingsDep,
) -> FileResponse:
    """Return the file as an attachment: what a model wrote does not become a page of the platform."""
    report, path = service.locate_file(session, settings, report_id=report_id, kind=kind)
    headers = {"Content-Disposition": disposition(f"{report.name}.{kind}")}
    return FileResponse(path, media_type=MEDIA_TYPES[kind], headers=headers)


@router.post("/{report_id}/retry", summary="Write a report again", responses=CONFLICT)
def retry_report(
    report_id: ReportId, background: BackgroundTasks, session: WriteSession, tasks: TasksDep
) -> ReportRead:
    """Retry a report that failed or is missing a format."""
    report = service.retry(session, report_id=report_id)
    tasks.send_later(background, WRITE_REPORTS)
    return presentation.present(session, report=report)


@router.delete("/{report_id}", status_code=204, summary="Delete a report and its files", responses=FOUND)
def delete_report(
    report_id: ReportId, background: BackgroundTasks, session: WriteSession, tasks: TasksDep
) -> None:
    """Delete a report and its files. The evaluations stay."""
    service.delete(session, report_id=report_id)
    tasks.send_later(background, TIDY_EVALUATIONS)
