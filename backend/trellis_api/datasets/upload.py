"""A file in a form, streamed from the request to an upload's folder while its size is watched.

Starlette's own form parser would first write the whole body to the system's
temporary folder, whatever its size; here the limit holds while bytes arrive.
"""

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, BinaryIO

from fastapi import Depends, Request
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from trellis_api.core.columns import utc_now
from trellis_api.core.dependencies import SettingsDep
from trellis_api.core.request_guard import stream_body
from trellis_api.core.settings import Settings
from trellis_api.uploads import storage
from trellis_api.uploads.errors import UploadMalformed, explain_disk_error, too_large
from trellis_api.uploads.storage import StoredUpload, UploadRecord

_LICENCES = "licences"
_FIELDS = frozenset({"name", "description", _LICENCES})
#: Fields that a form may have several times, each of them kept.
_REPEATED = frozenset({_LICENCES})
_MAX_REPEATED = 20
#: A dependency that receives a form.
Receiver = Callable[..., AsyncIterator["ReceivedForm"]]
_MAX_FIELD_BYTES = 16 * 1024
#: Boundaries, headers and the text fields around the file.
_FORM_OVERHEAD_BYTES = 64 * 1024


@dataclass
class ReceivedForm:
    """A received file and the text fields beside it."""

    upload: StoredUpload
    filename: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    #: The values of those that may be there several times.
    lists: dict[str, list[str]] = field(default_factory=dict)
    size_bytes: int = 0
    #: Whether a dataset was asked for that needs the file; otherwise it goes with the request.
    is_kept: bool = False


class _FormReceiver:
    """Callbacks of the multipart parser: the part ``file`` goes to disk, known fields to memory."""

    def __init__(self, form: ReceivedForm, output: BinaryIO, max_bytes: int, fields: frozenset[str]) -> None:
        self._form = form
        self._fields = fields
        self.sha256 = hashlib.sha256()
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
            self._form.filename = storage.clean_filename(
                options.get(b"filename", b"").decode(errors="replace")
            )
        elif self._part not in self._fields:
            known = ", ".join(["file", *sorted(self._fields)])
            raise UploadMalformed(f"Unknown form field '{self._part[:80]}'; known fields: {known}.")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._part == "file":
            self._form.size_bytes += end - start
            if self._form.size_bytes > self._max_bytes:
                raise too_large(self._max_bytes)
            piece = memoryview(data)[start:end]
            self.sha256.update(piece)
            self._output.write(piece)
        elif len(self._data) + end - start > _MAX_FIELD_BYTES:
            raise UploadMalformed(f"The field '{self._part}' is too long.")
        else:
            self._data += data[start:end]

    def _end_part(self) -> None:
        if self._part in self._fields:
            try:
                self._keep(self._data.decode())
            except UnicodeDecodeError as error:
                raise UploadMalformed(f"The field '{self._part}' is not UTF-8.") from error
        elif not self._part:
            raise UploadMalformed("A part of the form has no name.")

    def _keep(self, value: str) -> None:
        if self._part not in _REPEATED:
            self._form.fields[self._part] = value
            return
        values = self._form.lists.setdefault(self._part, [])
        if len(values) >= _MAX_REPEATED:
            raise UploadMalformed(f"A form can have at most {_MAX_REPEATED} fields '{self._part}'.")
        values.append(value)

    def _end(self) -> None:
        self.is_ended = True
        if not self._has_file:
            raise UploadMalformed("The form has no part called 'file'.")


def receive_form(fields: frozenset[str]) -> Receiver:
    """Build a dependency that receives a form with a file and these text fields."""

    async def receive(request: Request, settings: SettingsDep) -> AsyncIterator[ReceivedForm]:
        """Receive the form's file as a complete upload, removed unless something was made from it."""
        boundary = _boundary_of(request)
        _check_announced_size(request, settings)
        form = ReceivedForm(await run_in_threadpool(storage.reserve, settings))
        try:
            with form.upload.path.open("wb") as output:
                receiver = _FormReceiver(form, output, settings.max_upload_bytes, fields)
                await _receive(request, receiver, boundary)
            await run_in_threadpool(_record, form, receiver.sha256.hexdigest())
            yield form
        except OSError as error:
            raise explain_disk_error(error) from error
        finally:
            if not form.is_kept:
                await run_in_threadpool(form.upload.remove)

    return receive


def _record(form: ReceivedForm, sha256: str) -> None:
    form.upload.write_record(
        UploadRecord(filename=form.filename, size_bytes=form.size_bytes, sha256=sha256, created_at=utc_now())
    )


async def _receive(request: Request, receiver: _FormReceiver, boundary: bytes) -> None:
    parser = MultipartParser(boundary, receiver.callbacks())  # type: ignore[arg-type]
    try:
        async for chunk in stream_body(request):
            if chunk:
                await run_in_threadpool(parser.write, chunk)
        parser.finalize()
    except MultipartParseError as error:
        raise UploadMalformed(f"The form cannot be parsed: {error}") from error
    if not receiver.is_ended:
        raise UploadMalformed("The form is incomplete; the upload was interrupted.")


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
    storage.check_room(settings, size_bytes)


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
                            "description": "JSONL, JSON array, CSV, Parquet or Arrow, packed or not.",
                        },
                        "name": {
                            "type": "string",
                            "maxLength": 120,
                            "description": "Default: the file's name without its suffix.",
                        },
                        "description": {"type": "string", "maxLength": 2000},
                        _LICENCES: {
                            "type": "array",
                            "maxItems": _MAX_REPEATED,
                            "items": {"type": "string", "minLength": 1, "maxLength": 120},
                            "description": "SPDX identifiers or names, e.g. apache-2.0; one form field each.",
                        },
                    },
                }
            }
        },
    }
}

FormDep = Annotated[ReceivedForm, Depends(receive_form(_FIELDS))]
