"""Downloads of models and checkpoints: single files with ranges, and all of them as one tar archive."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import FileResponse, StreamingResponse
from starlette.responses import Response

from trellis_api.cards.service import read_card_of_download
from trellis_api.core.dependencies import ReadSession, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody
from trellis_api.datasets.download import disposition
from trellis_api.downloads.archive import Archive
from trellis_api.downloads.listing import Folder, list_checkpoint, list_model
from trellis_api.downloads.ranges import parse_range
from trellis_api.downloads.schemas import FileRead, FilesRead
from trellis_api.jobs.dependencies import JobId

CARD = "README.md"
RESPONSES: dict[int | str, dict[str, Any]] = {
    401: ERROR_RESPONSES[401],
    404: ERROR_RESPONSES[404],
    409: ERROR_RESPONSES[409],
}
RANGES: dict[int | str, dict[str, Any]] = {
    206: {"description": "The requested range"},
    416: {"model": ErrorBody, "description": "The range starts after the end"},
}
router = APIRouter(tags=["downloads"], responses=RESPONSES)
ModelId = Annotated[str, Path(description="ID or name of the model.")]
Step = Annotated[int, Path(ge=0, le=2**53, description="Step of the checkpoint.")]
Name = Annotated[str, Path(max_length=1000, description="A name that the list of files has.")]


@router.get("/models/{model_id}/files", summary="List a model's files")
def list_model_files(model_id: ModelId, session: ReadSession, settings: SettingsDep) -> FilesRead:
    """List weights, tokenizer and configuration."""
    return _describe(list_model(session, settings, model_id=model_id)[1])


@router.get(
    "/models/{model_id}/files/{name:path}",
    summary="Download a file of a model",
    response_class=FileResponse,
    responses=RANGES,
)
def download_model_file(
    model_id: ModelId, name: Name, session: ReadSession, settings: SettingsDep
) -> FileResponse:
    """Download a file.

    Byte ranges are supported, so interrupted downloads can resume (`If-Range` with the ETag).
    """
    return _send_file(list_model(session, settings, model_id=model_id)[1], name)


@router.get(
    "/models/{model_id}/download",
    summary="Download a model as a tar archive",
    response_class=StreamingResponse,
    responses=RANGES,
)
def download_model(
    model_id: ModelId, request: Request, session: ReadSession, settings: SettingsDep
) -> Response:
    """Download all files, with the model card as README.md if there is none. Byte ranges are supported."""
    model, folder = list_model(session, settings, model_id=model_id)
    card = read_card_of_download(session, settings, model=model)
    return _send_archive(request, folder, extra={CARD: card})


@router.get("/jobs/{job_id}/checkpoints/{step}/files", summary="List a checkpoint's files")
def list_checkpoint_files(
    job_id: JobId, step: Step, session: ReadSession, settings: SettingsDep
) -> FilesRead:
    """List the trainer's files, including optimizer state; export the checkpoint to get a model."""
    return _describe(list_checkpoint(session, settings, job_id=job_id, step=step))


@router.get(
    "/jobs/{job_id}/checkpoints/{step}/files/{name:path}",
    summary="Download a file of a checkpoint",
    response_class=FileResponse,
    responses=RANGES,
)
def download_checkpoint_file(
    job_id: JobId, step: Step, name: Name, session: ReadSession, settings: SettingsDep
) -> FileResponse:
    """Download a file of a checkpoint. Byte ranges are supported, as for a model's files."""
    return _send_file(list_checkpoint(session, settings, job_id=job_id, step=step), name)


@router.get(
    "/jobs/{job_id}/checkpoints/{step}/download",
    summary="Download a checkpoint as a tar archive",
    response_class=StreamingResponse,
    responses=RANGES,
)
def download_checkpoint(
    job_id: JobId, step: Step, request: Request, session: ReadSession, settings: SettingsDep
) -> Response:
    """Download all of its files. Byte ranges are supported."""
    return _send_archive(request, list_checkpoint(session, settings, job_id=job_id, step=step))


def _describe(folder: Folder) -> FilesRead:
    items = [FileRead(name=file.name, size_bytes=file.size_bytes) for file in folder.files]
    return FilesRead(
        items=items,
        size_bytes=sum(item.size_bytes for item in items),
        archive_bytes=Archive(folder).size_bytes,
    )


def _send_file(folder: Folder, name: str) -> FileResponse:
    file = folder.find(name)
    headers = {"Content-Disposition": disposition(name.rpartition("/")[2])}
    return FileResponse(file.path, media_type="application/octet-stream", headers=headers)


def _send_archive(request: Request, folder: Folder, *, extra: dict[str, str] | None = None) -> Response:
    archive = Archive(folder, extra=extra)
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": archive.etag,
        "Content-Disposition": disposition(f"{folder.title}.tar"),
    }
    # What was downloaded of another state of the files is of no use: then all of it is sent.
    is_same = request.headers.get("if-range", archive.etag) == archive.etag
    wanted = parse_range(request.headers.get("range"), archive.size_bytes) if is_same else None
    start, stop = wanted or (0, archive.size_bytes)
    headers["Content-Length"] = str(stop - start)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{archive.size_bytes}"
    return StreamingResponse(
        archive.read(start, stop),
        status_code=200 if wanted is None else 206,
        media_type="application/x-tar",
        headers=headers,
    )
