"""Reads the body of a batch within limits: a small gzip file can hold a very large text."""

import zlib

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from trellis_contracts.events import IngestBatch

from trellis_api.core.request_guard import stream_body
from trellis_api.core.settings import Settings
from trellis_api.ingest.dependencies import JobToken
from trellis_api.ingest.errors import BatchTooLarge, MalformedBatch

GZIP_WINDOW = 16 + zlib.MAX_WBITS


async def read_batch_body(request: Request, _token: JobToken) -> IngestBatch:
    """Read the batch of a request, decompressed if need be."""
    settings: Settings = request.app.state.settings
    limit = settings.max_batch_bytes
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding not in {"identity", "gzip"}:
        raise MalformedBatch("Send the batch as it is, or with gzip.")
    chunks = bytearray()
    async for chunk in stream_body(request):
        chunks += chunk
        if len(chunks) > limit:
            raise BatchTooLarge(f"Batches are limited to {limit} bytes.", {"limit": limit})
    # Off the event loop: a large batch takes some milliseconds, and streams must not stutter.
    return await run_in_threadpool(_parse, bytes(chunks), encoding == "gzip", limit)


def _parse(body: bytes, is_gzip: bool, limit: int) -> IngestBatch:
    if is_gzip:
        body = decompress(body, limit=limit)
    try:
        return IngestBatch.model_validate_json(body)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)[:10]
        raise MalformedBatch("This is not a batch of events.", problems) from error


def decompress(body: bytes, *, limit: int) -> bytes:
    """Unpack gzip, and stop at ``limit`` bytes whatever the file says of itself."""
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    try:
        text = unpacker.decompress(body, limit + 1)
    except zlib.error as error:
        raise MalformedBatch("The body is not valid gzip.") from error
    if len(text) > limit or unpacker.unconsumed_tail:
        raise BatchTooLarge(f"A batch may have {limit} bytes after decompression.", {"limit": limit})
    if not unpacker.eof:
        raise MalformedBatch("The gzip body is cut off.")
    return text
