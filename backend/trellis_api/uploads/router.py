"""``/uploads``: files in pieces, after the tus protocol 1.0.0 (https://tus.io/protocols/resumable-upload).

Extensions: creation, expiration, checksum, termination. What was received lies on disk, so a client goes
on after any break, its own or the server's.
"""

from email.utils import format_datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool

from trellis_api.core.dependencies import ReadSession, SettingsDep
from trellis_api.core.errors import ERROR_RESPONSES, ErrorBody
from trellis_api.core.request_guard import stream_body
from trellis_api.uploads import service, storage, tus
from trellis_api.uploads.errors import TUS_VERSION
from trellis_api.uploads.receiving import receive
from trellis_api.uploads.schemas import UploadRead
from trellis_api.uploads.storage import StoredUpload

_PROTOCOL: dict[int | str, dict[str, Any]] = {
    412: {"model": ErrorBody, "description": "Another version of the protocol"},
    423: {"model": ErrorBody, "description": "Another request writes to the upload"},
}
_LIMITS: dict[int | str, dict[str, Any]] = {
    413: {"model": ErrorBody, "description": "Larger than the limit, or than announced"},
    507: {"model": ErrorBody, "description": "No room on the disk"},
}
_PIECES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "Checksum of an unknown kind"},
    408: {"model": ErrorBody, "description": "Nothing arrived for a long time"},
    415: {"model": ErrorBody, "description": "Not sent as a chunk"},
    460: {"model": ErrorBody, "description": "Not what the checksum says"},
}
_PIECE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {tus.PIECE_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}

router = APIRouter(prefix="/uploads", tags=["uploads"], responses=ERROR_RESPONSES)

TusVersion = Annotated[str | None, Header(alias="Tus-Resumable", description=f"{TUS_VERSION}.")]
Size = Annotated[
    int, Header(alias="Upload-Length", ge=0, le=2**62, description="Of the whole file, in bytes.")
]
Metadata = Annotated[
    str | None,
    Header(alias="Upload-Metadata", description="Keys with values in base64: filename, sha256 (hex)."),
]
UploadOffset = Annotated[int, Header(alias="Upload-Offset", ge=0, le=2**62)]
ChecksumHeader = Annotated[
    str | None, Header(alias="Upload-Checksum", description="sha256 or sha1, and the digest in base64.")
]
PieceSize = Annotated[int, Header(alias="Content-Length", ge=0, include_in_schema=False)]


@router.options("", status_code=204, response_class=Response)
def describe_uploads(settings: SettingsDep) -> Response:
    """Return the supported protocol features: Tus-Version, Tus-Extension, Tus-Max-Size."""
    headers = {
        "Tus-Resumable": TUS_VERSION,
        "Tus-Version": TUS_VERSION,
        "Tus-Extension": tus.EXTENSIONS,
        "Tus-Max-Size": str(settings.max_upload_bytes),
        "Tus-Checksum-Algorithm": ",".join(tus.CHECKSUMS),
    }
    return Response(status_code=204, headers=headers)


@router.post("", status_code=201, response_class=Response, responses={**_PROTOCOL, **_LIMITS})
def create_upload(
    request: Request,
    settings: SettingsDep,
    size: Size,
    metadata: Metadata = None,
    version: TusVersion = None,
) -> Response:
    """Start an upload of ``Upload-Length`` bytes, described by ``Upload-Metadata``; returns Location."""
    tus.check_version(version)
    upload = service.begin(settings, size_bytes=size, metadata=metadata)
    # Without host: what a client reached through a proxy it reaches again.
    location = f"{request.url.path.rstrip('/')}/{upload.id}"
    return Response(status_code=201, headers={**_tell(upload), "Location": location})


@router.head("/{upload_id}", response_class=Response, responses=_PROTOCOL)
def locate_upload(upload_id: str, settings: SettingsDep, version: TusVersion = None) -> Response:
    """Return the number of bytes received: ``Upload-Offset``."""
    tus.check_version(version)
    upload = storage.find(settings, upload_id)
    headers = _tell(upload) | {
        "Upload-Length": str(upload.record.size_bytes),
        "Cache-Control": "no-store",
    }
    return Response(status_code=200, headers=headers)


@router.get("/{upload_id}")
def read_upload(upload_id: str, settings: SettingsDep) -> UploadRead:
    """Return one upload, as JSON."""
    return storage.find(settings, upload_id).describe()


@router.patch(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    responses={**_PROTOCOL, **_LIMITS, **_PIECES},
    openapi_extra=_PIECE_BODY,
)
async def append_upload(
    upload_id: str,
    request: Request,
    settings: SettingsDep,
    offset: UploadOffset,
    checksum: ChecksumHeader = None,
    version: TusVersion = None,
    announced_bytes: PieceSize = 0,
) -> Response:
    """Upload the next chunk at ``Upload-Offset``; ``Upload-Checksum`` is verified if given."""
    tus.check_version(version)
    tus.check_piece_type(request.headers.get("content-type"))
    upload = await run_in_threadpool(storage.find, settings, upload_id)
    await receive(
        stream_body(request),
        upload,
        settings,
        offset=offset,
        announced_bytes=announced_bytes,
        checksum=tus.parse_checksum(checksum),
    )
    return Response(status_code=204, headers=await run_in_threadpool(_tell, upload))


@router.delete("/{upload_id}", status_code=204, response_class=Response, responses=_PROTOCOL)
def delete_upload(
    upload_id: str, session: ReadSession, settings: SettingsDep, version: TusVersion = TUS_VERSION
) -> Response:
    """Delete an upload and its file; refused while an import reads it."""
    tus.check_version(version)
    service.delete(session, settings, upload_id=upload_id)
    return Response(status_code=204, headers={"Tus-Resumable": TUS_VERSION})


def _tell(upload: StoredUpload) -> dict[str, str]:
    return {
        "Tus-Resumable": TUS_VERSION,
        "Upload-Offset": str(upload.offset),
        "Upload-Expires": format_datetime(upload.expires_at, usegmt=True),
    }
