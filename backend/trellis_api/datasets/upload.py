"""An upload, streamed from the request to a file under the data root while its size is watched.

Starlette's own form parser would first write the whole body to the system's
temporary folder, whatever its size; here the limit holds while bytes arrive.
"""

import errno
import shutil
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, BinaryIO

from fastapi import Depends, Request
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from trellis_api.core.dependencies import SettingsDep
from trellis_api.core.ids import new_id
from trellis_api.core.settings import Settings
from trellis_api.datasets.errors import DiskFull, UploadMalformed, UploadTooLarge

_FIELDS = frozenset({"name", "description"})
_MAX_FIELD_BYTES = 16 * 1024
#: Boundaries, headers and the text fields around the file.
_FORM_OVERHEAD_BYTES = 64 * 1024
_STALE_AFTER_S = 24 * 3600


@dataclass
class Upload:
    """A received file in a folder of its own, which disappears with the request."""

    folder: Path
    filename: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    size_bytes: int = 0

    @property
    def path(self) -> Path:
        """The file as it was sent."""
        return self.folder / "upload"


class _FormReceiver:
    """Callbacks of the multipart parser: the part ``file`` goes to disk, known fields to memory."""

    def __init__(self, upload: Upload, output: BinaryIO, max_bytes: int) -> None:
        self._upload = upload
        self._output = output
        self._max_bytes = max_bytes
        self._header = b""
        self._value = b""
        self._part = ""
        self._data = bytearray()
        self._has_file = False
        self.is_ended = False

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": self._add_header_name,
            "on_header_value": self._add_header_value,
            "on_header_end": self._end_header,
            "on_part_data": self._add_data,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }

    def _begin_part(self) -> None:
        self._part, self._data = "", bytearray()

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        name, value = self._header.lower(), self._value
        self._header = self._value = b""
        if name != b"content-disposition":
            return
        _, options = parse_options_header(value)
        self._part = options.get(b"name", b"").decode(errors="replace")
        if self._part == "file":
            if self._has_file:
                raise UploadMalformed("Send one file at a time.")
            self._has_file = True
            self._upload.filename = _clean_filename(options.get(b"filename", b"").decode(errors="replace"))
        elif self._part not in _FIELDS:
            raise UploadMalformed(
                f"Unknown form field '{self._part[:80]}'; known are file, name, description."
            )

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._part == "file":
            self._upload.size_bytes += end - start
            if self._upload.size_bytes > self._max_bytes:
                raise too_large(self._max_bytes)
            self._output.write(memoryview(data)[start:end])
        elif len(self._data) + end - start > _MAX_FIELD_BYTES:
            raise UploadMalformed(f"The field '{self._part}' is too long.")
        else:
            self._data += data[start:end]

    def _end_part(self) -> None:
        if self._part in _FIELDS:
            try:
                self._upload.fields[self._part] = self._data.decode()
            except UnicodeDecodeError as error:
                raise UploadMalformed(f"The field '{self._part}' is not UTF-8.") from error
        elif not self._part:
            raise UploadMalformed("A part of the form has no name.")

    def _end(self) -> None:
        self.is_ended = True
        if not self._has_file:
            raise UploadMalformed("The form has no part called 'file'.")


async def receive_upload(request: Request, settings: SettingsDep) -> AsyncIterator[Upload]:
    """Receive the form, and remove what was received when the request is over."""
    boundary = _boundary_of(request)
    _check_announced_size(request, settings)
    folder = settings.data_root / "uploads" / new_id("up")
    try:
        await run_in_threadpool(folder.mkdir, parents=True)
        upload = Upload(folder)
        with upload.path.open("wb") as output:
            await _receive(request, _FormReceiver(upload, output, settings.max_upload_bytes), boundary)
        yield upload
    except OSError as error:
        raise explain_disk_error(error) from error
    finally:
        await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)


def discard_stale_uploads(settings: Settings) -> None:
    """Remove what uploads of an earlier process left behind when it was killed.

    Young folders stay: another process may be receiving them at this moment.
    """
    for folder in (settings.data_root / "uploads").glob("up_*"):
        if time.time() - folder.stat().st_mtime > _STALE_AFTER_S:
            shutil.rmtree(folder, ignore_errors=True)


async def _receive(request: Request, receiver: _FormReceiver, boundary: bytes) -> None:
    parser = MultipartParser(boundary, receiver.callbacks())  # type: ignore[arg-type]
    try:
        async for chunk in request.stream():
            if chunk:
                await run_in_threadpool(parser.write, chunk)
        parser.finalize()
    except MultipartParseError as error:
        raise UploadMalformed(f"The form cannot be parsed: {error}") from error
    if not receiver.is_ended:
        raise UploadMalformed("The form ends in the middle; the upload was cut off.")


def _boundary_of(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise UploadMalformed("Send the file as multipart/form-data with a part called 'file'.")
    if len(boundary) > 200:
        raise UploadMalformed("The boundary of the form is too long.")
    return boundary


def _check_announced_size(request: Request, settings: Settings) -> None:
    """Answer before the first byte is read where the size is known."""
    announced = request.headers.get("content-length", "")
    size_bytes = int(announced) if announced.isascii() and announced.isdigit() else 0
    if size_bytes > settings.max_upload_bytes + _FORM_OVERHEAD_BYTES:
        raise too_large(settings.max_upload_bytes)
    free_bytes = shutil.disk_usage(settings.data_root).free
    if free_bytes - size_bytes < settings.min_free_disk_bytes:
        raise DiskFull(
            "The data root has too little free space for this upload.",
            {"free_bytes": free_bytes, "kept_free_bytes": settings.min_free_disk_bytes},
        )


def too_large(limit_bytes: int) -> UploadTooLarge:
    """The error for an upload above the limit."""
    return UploadTooLarge(
        f"The file is larger than the limit of {limit_bytes} bytes (TRELLIS_MAX_UPLOAD_BYTES).",
        {"limit_bytes": limit_bytes},
    )


def explain_disk_error(error: OSError) -> Exception:
    """A full disk is a fact worth telling; any other disk error stays itself."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFull("The disk of the data root is full.")
    return error


def _clean_filename(sent: str) -> str:
    """The last component, printable: the name is shown and never used as a path."""
    name = PurePosixPath(sent.replace("\\", "/")).name
    return "".join(character for character in name if character.isprintable())[:255]


#: What the form looks like, for the OpenAPI schema: the endpoint reads the stream itself.
UPLOAD_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "JSONL, JSON array, CSV or Parquet.",
                        },
                        "name": {
                            "type": "string",
                            "maxLength": 120,
                            "description": "Default: the file's name without its suffix.",
                        },
                        "description": {"type": "string", "maxLength": 2000},
                    },
                }
            }
        },
    }
}

UploadDep = Annotated[Upload, Depends(receive_upload)]
