"""``/v1/files`` and ``/v1/fine_tuning/jobs``: OpenAI's fine-tuning API."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, BackgroundTasks, Depends, Path, Query, Request
from fastapi.responses import FileResponse
from pydantic import ValidationError
from starlette.responses import Response
from trellis_contracts import tasks as task_names
from trellis_contracts.endpoints import OPENAI_PREFIX

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, TasksDep, WriteSession
from trellis_api.core.errors import InvalidRequest
from trellis_api.core.openai_errors import OPENAI_RESPONSES
from trellis_api.core.query_parameters import DEEP_OBJECT, read_deep_object
from trellis_api.core.texts import NO_NUL
from trellis_api.data_tasks.service import message_for
from trellis_api.datasets.download import disposition
from trellis_api.datasets.upload import ReceivedForm, receive_form
from trellis_api.fine_tuning import events, files, presentation, repository, results, service
from trellis_api.fine_tuning.models import OpenAiFile
from trellis_api.fine_tuning.requests import METADATA, FineTuningCreate
from trellis_api.fine_tuning.schemas import (
    CheckpointList,
    EventList,
    FileDeleted,
    FileList,
    FileObject,
    JobList,
    JobObject,
)
from trellis_api.jobs.dependencies import TRY_TEMPLATES
from trellis_api.uploads import storage

router = APIRouter(prefix=OPENAI_PREFIX, tags=["fine-tuning"], responses=OPENAI_RESPONSES)
FileId = Annotated[str, Path(max_length=64, description="File ID (file-...).")]
JobId = Annotated[str, Path(max_length=64, description="Fine-tuning job ID (ftjob-...).")]
After = Annotated[
    str | None, Query(max_length=64, pattern=NO_NUL, description="ID of the last item on the previous page.")
]
Limit = Annotated[int, Query(ge=1, le=100)]
FormDep = Annotated[ReceivedForm, Depends(receive_form(files.FIELDS))]
_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "JSON lines."},
                        "purpose": {"type": "string", "enum": [files.PURPOSE]},
                    },
                }
            }
        },
    }
}


@router.post("/files", summary="Upload a file for fine-tuning", openapi_extra=_FORM)
def create_file(
    form: FormDep,
    database: DatabaseDep,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> FileObject:
    """Upload a file.

    A worker imports it as a dataset; `status` becomes `processed`, or `error` with the line.
    """
    with database.write() as session:
        row, task = files.add(session, settings, form)
        found = files.present(session, row)
    form.is_kept = True
    tasks.send_later(background, message_for(task))
    return found


@router.get("/files", summary="List files")
def list_files(
    session: ReadSession,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Literal["asc", "desc"] = "desc",
    purpose: Annotated[str | None, Query(max_length=64)] = None,
) -> FileList:
    """List uploaded files, or with the purpose `fine-tune-results` those that jobs have written."""
    data, has_more = list[FileObject](), False
    if purpose in (None, files.PURPOSE):
        behind = files.get_file(session, file_id=after) if after else None
        rows = repository.list_rows(
            session, OpenAiFile, after=behind, limit=limit + 1, is_ascending=order == "asc"
        )
        data, has_more = files.present_many(session, rows[:limit]), len(rows) > limit
    elif purpose == results.PURPOSE:
        data, has_more = results.list_page(session, after=after, limit=limit, is_ascending=order == "asc")
    return FileList(
        data=data,
        has_more=has_more,
        first_id=data[0].id if data else None,
        last_id=data[-1].id if data else None,
    )


@router.get("/files/{file_id}", summary="Get a file")
def read_file(file_id: FileId, session: ReadSession) -> FileObject:
    """Get a file's status. Also works for a job's result file."""
    if found := results.find(session, file_id=file_id):
        return results.present(session, *found)
    return files.present(session, files.get_file(session, file_id=file_id))


@router.get("/files/{file_id}/content", summary="Get a file's content", response_class=Response)
def read_file_content(file_id: FileId, session: ReadSession, settings: SettingsDep) -> Response:
    """Download the uploaded bytes; for a result file, the metrics of each step as CSV."""
    if found := results.find(session, file_id=file_id):
        headers = {"Content-Disposition": disposition(results.FILENAME)}
        return Response(results.write(session, found[1]), media_type="text/csv", headers=headers)
    row = files.get_file(session, file_id=file_id)
    upload = storage.find(settings, row.upload_id)
    headers = {"Content-Disposition": disposition(row.filename)}
    return FileResponse(upload.path, media_type="application/octet-stream", headers=headers)


@router.delete("/files/{file_id}", summary="Delete a file and its rows")
def delete_file(file_id: FileId, session: WriteSession, settings: SettingsDep) -> FileDeleted:
    """Delete a file and its rows; fails while an unfinished job uses the file."""
    files.delete(session, settings, file_id=file_id)
    return FileDeleted(id=file_id)


@router.post("/fine_tuning/jobs", summary="Create a fine-tuning job", dependencies=[TRY_TEMPLATES])
def create_fine_tuning_job(
    body: FineTuningCreate,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> JobObject:
    """Start a platform job; its result is a model `ft:<base>:<suffix>:<id>`."""
    row = service.create(session, settings, body)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, row)


@router.get("/fine_tuning/jobs", summary="List fine-tuning jobs")
def list_fine_tuning_jobs(
    request: Request,
    session: ReadSession,
    after: After = None,
    limit: Limit = 20,
    metadata: Annotated[
        Literal["null"] | None,
        Query(
            description="`metadata[key]=value`: jobs with this value; `metadata=null`: without metadata.",
            json_schema_extra=DEEP_OBJECT,
        ),
    ] = None,
) -> JobList:
    """List jobs, newest first."""
    behind = service.get_job(session, job_id=after) if after else None
    wanted = None if metadata else _read_metadata(request)
    conditions = repository.has_metadata(wanted)
    return presentation.list_page(session, after=behind, limit=limit, conditions=conditions)


def _read_metadata(request: Request) -> dict[str, str]:
    """Read the filter ``metadata[key]=value``; refuses keys that no job can have."""
    found = read_deep_object(request, "metadata")
    try:
        return METADATA.validate_python(found)
    except ValidationError as error:
        raise InvalidRequest(
            "metadata: 16 keys at most, of 64 characters and without quotes; values have 512 at most.",
            {"param": "metadata"},
        ) from error


@router.get("/fine_tuning/jobs/{fine_tuning_job_id}", summary="Get a fine-tuning job")
def read_fine_tuning_job(fine_tuning_job_id: JobId, session: ReadSession) -> JobObject:
    """Get its status and, once it has succeeded, its model."""
    return presentation.present(session, service.get_job(session, job_id=fine_tuning_job_id))


@router.post("/fine_tuning/jobs/{fine_tuning_job_id}/cancel", summary="Cancel a fine-tuning job")
def cancel_fine_tuning_job(
    fine_tuning_job_id: JobId, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> JobObject:
    """Cancel it permanently; checkpoints are kept."""
    row, stopped = service.cancel(session, job_id=fine_tuning_job_id)
    if stopped is not None:
        tasks.send_later(background, task_names.STOP, stopped)
    return presentation.present(session, row)


@router.post("/fine_tuning/jobs/{fine_tuning_job_id}/pause", summary="Pause a fine-tuning job")
def pause_fine_tuning_job(
    fine_tuning_job_id: JobId, session: WriteSession, tasks: TasksDep, background: BackgroundTasks
) -> JobObject:
    """Save a checkpoint and free the slot."""
    row, stopped = service.pause(session, job_id=fine_tuning_job_id)
    if stopped is not None:
        tasks.send_later(background, task_names.STOP, stopped)
    return presentation.present(session, row)


@router.post("/fine_tuning/jobs/{fine_tuning_job_id}/resume", summary="Resume a fine-tuning job")
def resume_fine_tuning_job(
    fine_tuning_job_id: JobId,
    session: WriteSession,
    settings: SettingsDep,
    tasks: TasksDep,
    background: BackgroundTasks,
) -> JobObject:
    """Continue from its last checkpoint."""
    row = service.resume(session, settings, job_id=fine_tuning_job_id)
    tasks.send_later(background, task_names.LAUNCH_QUEUED)
    return presentation.present(session, row)


@router.get("/fine_tuning/jobs/{fine_tuning_job_id}/events", summary="List events of a job")
def list_fine_tuning_events(
    fine_tuning_job_id: JobId, session: ReadSession, after: After = None, limit: Limit = 20
) -> EventList:
    """List states, checkpoints and metrics of each step, newest first."""
    row = service.get_job(session, job_id=fine_tuning_job_id)
    return events.list_page(session, row, after=after, limit=limit)


@router.get("/fine_tuning/jobs/{fine_tuning_job_id}/checkpoints", summary="List checkpoints of a job")
def list_fine_tuning_checkpoints(
    fine_tuning_job_id: JobId, session: ReadSession, after: After = None, limit: Limit = 10
) -> CheckpointList:
    """List them, newest first; requests can use `fine_tuned_model_checkpoint` as `model`."""
    row = service.get_job(session, job_id=fine_tuning_job_id)
    return presentation.list_checkpoints(session, row, after=after, limit=limit)
