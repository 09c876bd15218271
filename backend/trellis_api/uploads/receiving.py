"""Takes in one piece of an upload while it arrives."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack
from types import TracebackType

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from trellis_api.core.settings import Settings
from trellis_api.uploads import storage
from trellis_api.uploads.errors import (
    ChecksumMismatch,
    OffsetConflict,
    UploadMalformed,
    UploadStalled,
    UploadTooLarge,
    explain_disk_error,
)
from trellis_api.uploads.running_hashes import RunningHashes
from trellis_api.uploads.storage import StoredUpload
from trellis_api.uploads.tus import Checksum

#: Bytes that are gathered before a thread is asked to write them.
_BUFFER_BYTES = 1024 * 1024
#: A connection over which nothing comes for so long is dead; the client may want to go on over another.
STALL_TIMEOUT_S = 30.0
_HASHES = RunningHashes()


class Piece:
    """The writer of one piece: has the lock from ``open`` to the end of the block."""

    def __init__(self, upload: StoredUpload, checksum: Checksum | None) -> None:
        self._upload = upload
        self._checksum = checksum
        self._hash = storage.new_hash(checksum.algorithm) if checksum else None
        #: Of the whole file up to here, and up to where the piece begins; None where nobody knows.
        self._whole: hashlib._Hash | None = None
        self._before: hashlib._Hash | None = None
        self._stack = ExitStack()
        self._buffer = bytearray()
        self._handle = -1
        self._start = self._end = self._limit = 0

    def open(self, offset: int, settings: Settings, announced_bytes: int) -> None:
        """Take the lock and look whether the piece begins where the upload ends."""
        self._stack.enter_context(self._upload.locked())
        self._start = self._end = self._upload.offset
        self._limit = self._upload.record.size_bytes
        if offset != self._start:
            raise OffsetConflict(
                f"The upload has {self._start} bytes; a piece begins there, not at {offset}.",
                {"offset": self._start},
            )
        self._check_size(announced_bytes)
        storage.check_room(settings, announced_bytes)
        self._upload.settle(self._start)
        self._whole = _HASHES.take(self._upload.id, self._start)
        if self._checksum:
            self._upload.mark_unchecked(self._start)
            self._before = self._whole.copy() if self._whole else None
        self._handle = os.open(self._upload.path, os.O_WRONLY | os.O_APPEND)
        self._stack.callback(os.close, self._handle)

    def add(self, data: bytes) -> bool:
        """Take bytes; whether there are enough to be written."""
        self._check_size(len(data) + len(self._buffer))
        self._buffer += data
        return len(self._buffer) >= _BUFFER_BYTES

    def write(self) -> None:
        """Write what was taken."""
        view = memoryview(self._buffer)
        while view:
            written = os.write(self._handle, view)
            for each in (self._hash, self._whole):
                if each:
                    each.update(view[:written])
            self._end += written
            view = view[written:]
        view.release()
        self._buffer = bytearray()

    def complete(self) -> int:
        """Complete a piece that has arrived: check its checksum, sync it to disk, return the new offset.

        With the last piece the whole is compared, too, where its hash is known: it is not read for that.
        """
        self.write()
        if self._hash and self._checksum and self._hash.digest() != self._checksum.digest:
            raise ChecksumMismatch("Checksum mismatch. Send the chunk again.")
        os.fsync(self._handle)
        self._upload.settle(self._end)
        if self._end < self._limit:
            _HASHES.keep(self._upload.id, self._end, self._whole)
        elif self._whole:
            self._upload.finish(self._whole.hexdigest())
        return self._end

    def __enter__(self) -> "Piece":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep what arrived of a piece that broke off, unless nobody can say whether it is right."""
        with self._stack:
            if self._handle >= 0 and error is not None and self._upload.folder.is_dir():
                if self._checksum:
                    self._upload.settle(self._start)
                    _HASHES.keep(self._upload.id, self._start, self._before)
                    return
                if not isinstance(error, OSError):
                    self.write()
                _HASHES.keep(self._upload.id, self._end, self._whole)

    def _check_size(self, more_bytes: int) -> None:
        if self._end + more_bytes > self._limit:
            self._buffer.clear()
            raise UploadTooLarge(
                f"The upload was announced with {self._limit} bytes, and this piece goes beyond them.",
                {"size_bytes": self._limit, "offset": self._end},
            )


async def receive(
    body: AsyncIterator[bytes],
    upload: StoredUpload,
    settings: Settings,
    *,
    offset: int,
    announced_bytes: int,
    checksum: Checksum | None,
) -> int:
    """Append a piece; the new offset."""
    try:
        with Piece(upload, checksum) as piece:
            await run_in_threadpool(piece.open, offset, settings, announced_bytes)
            while data := await _next_of(body):
                if piece.add(data):
                    await run_in_threadpool(piece.write)
            return await run_in_threadpool(piece.complete)
    except ClientDisconnect as error:
        raise UploadMalformed("The chunk was interrupted.") from error
    except OSError as error:
        raise explain_disk_error(error) from error


async def _next_of(body: AsyncIterator[bytes]) -> bytes:
    """Return the next bytes that are not empty; none at the end of the body."""
    while True:
        try:
            data = await asyncio.wait_for(anext(body, None), STALL_TIMEOUT_S)
        except TimeoutError as error:
            raise UploadStalled(f"Nothing has arrived for {STALL_TIMEOUT_S:.0f} seconds.") from error
        if data is None:
            return b""
        if data:
            return data
