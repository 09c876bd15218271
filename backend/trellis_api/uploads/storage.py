"""Uploads on disk: a folder each, with the bytes as they came and a small record of what they are to become.

The size of the file is the offset, so there is nothing that could disagree with it after a crash. Bytes
whose checksum is still to be compared do not count: a mark beside them says where they begin.
"""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ValidationError
from trellis_contracts.hashing import hash_file
from trellis_data.atomic_files import write_atomically

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id, new_id
from trellis_api.core.settings import Settings
from trellis_api.uploads.errors import (
    ChecksumMismatch,
    UploadDiskFull,
    UploadIncomplete,
    UploadLocked,
    UploadNotFound,
    too_large,
)
from trellis_api.uploads.schemas import UploadRead

LIFETIME = timedelta(hours=24)
_DATA, _RECORD, _LOCK, _UNCHECKED = "data", "upload.json", "lock", "unchecked"


class UploadRecord(BaseModel):
    """What is known of an upload besides its bytes."""

    filename: str
    size_bytes: int
    #: Of the whole, as the client announced it.
    wanted_sha256: str | None = None
    #: Of the whole, once somebody has read all of it: who received it, else who imports it.
    sha256: str | None = None
    created_at: datetime


@dataclass(frozen=True)
class CompleteUpload:
    """A file that has arrived as a whole."""

    path: Path
    filename: str
    size_bytes: int
    #: None where the whole is still to be compared with what was announced.
    sha256: str | None


class StoredUpload:
    """One upload's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name

    @property
    def path(self) -> Path:
        """The bytes."""
        return self.folder / _DATA

    @property
    def record(self) -> UploadRecord:
        """What was announced; 404 where there is no such upload (any more)."""
        try:
            return UploadRecord.model_validate_json((self.folder / _RECORD).read_bytes())
        except (OSError, ValidationError) as error:
            raise UploadNotFound(f"Upload '{self.id}' not found; it may have expired.") from error

    @property
    def offset(self) -> int:
        """How much has arrived."""
        try:
            size = self.path.stat().st_size
        except OSError as error:
            raise UploadNotFound(f"Upload '{self.id}' not found; it may have expired.") from error
        try:
            return min(size, int((self.folder / _UNCHECKED).read_text() or 0))
        except (FileNotFoundError, ValueError):
            return size

    @property
    def expires_at(self) -> datetime:
        """When it goes: a day after the last byte."""
        path = self.path if self.path.exists() else self.folder
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) + LIFETIME

    def keep(self) -> None:
        """Let the day begin again: something was asked for that needs the file."""
        os.utime(self.path)

    def write_record(self, record: UploadRecord) -> None:
        """Replace the record in one step."""
        write_atomically(self.folder / _RECORD, record.model_dump_json())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the write lock; 423 if another request has it. A killed process loses it."""
        if not self.folder.is_dir():
            raise UploadNotFound(f"Upload '{self.id}' not found; it may have expired.")
        with (self.folder / _LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UploadLocked("Another request is writing to this upload.") from error
            yield

    def mark_unchecked(self, offset: int) -> None:
        """Mark the bytes from here on as unchecked: they do not count until ``settle`` is called."""
        (self.folder / _UNCHECKED).write_text(str(offset))

    def settle(self, offset: int) -> None:
        """End the upload here and drop what follows. Call it with the lock."""
        os.truncate(self.path, offset)
        (self.folder / _UNCHECKED).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, sha256: str) -> None:
        """Note the hash of the whole, which has arrived; one that was not announced removes it."""
        record = self.record
        if record.wanted_sha256 not in (None, sha256):
            self.remove()
            raise ChecksumMismatch(
                "The uploaded file doesn't match its checksum and was deleted. Upload it again.",
                {"wanted_sha256": record.wanted_sha256, "sha256": sha256},
            )
        self.write_record(record.model_copy(update={"sha256": sha256}))

    def require_complete(self) -> CompleteUpload:
        """Return the file, whether or not its hash is known; the error says what is missing otherwise."""
        record, offset = self.record, self.offset
        if offset != record.size_bytes:
            raise UploadIncomplete(
                f"{offset} of {record.size_bytes} bytes have arrived.",
                {"received_bytes": offset, "size_bytes": record.size_bytes},
            )
        return CompleteUpload(self.path, record.filename, record.size_bytes, record.sha256)

    def describe(self) -> UploadRead:
        """Describe the upload as clients see it."""
        record, offset = self.record, self.offset
        return UploadRead(
            id=self.id,
            filename=record.filename,
            size_bytes=record.size_bytes,
            received_bytes=offset,
            is_complete=offset == record.size_bytes,
            sha256=record.sha256,
            created_at=record.created_at,
            expires_at=self.expires_at,
        )


def create(
    settings: Settings, *, filename: str, size_bytes: int, wanted_sha256: str | None = None
) -> StoredUpload:
    """Begin an upload; refused where it is too large or the disk too full."""
    if size_bytes > settings.max_upload_bytes:
        raise too_large(settings.max_upload_bytes)
    check_room(settings, size_bytes)
    upload = StoredUpload(_folder(settings) / new_id("up"))
    upload.folder.mkdir(parents=True)
    upload.path.touch()
    # Last: an upload without a record is none.
    upload.write_record(
        UploadRecord(
            filename=clean_filename(filename),
            size_bytes=size_bytes,
            wanted_sha256=wanted_sha256,
            created_at=utc_now(),
        )
    )
    return upload


def reserve(settings: Settings) -> StoredUpload:
    """Create a folder for a file that arrives in one request; it is an upload once it has a record."""
    upload = StoredUpload(_folder(settings) / new_id("up"))
    upload.folder.mkdir(parents=True)
    return upload


def find(settings: Settings, upload_id: str) -> StoredUpload:
    """Return the upload; 404 if there is none."""
    if not is_id(upload_id, prefix="up"):
        raise UploadNotFound(f"Upload '{upload_id[:40]}' not found.")
    upload = StoredUpload(_folder(settings) / upload_id)
    _ = upload.record
    return upload


def find_complete(settings: Settings, upload_id: str) -> CompleteUpload | None:
    """Return an upload's verified complete file; None if there is none, or it is incomplete.

    For workers: a file whose hash nobody knows is read from beginning to end. Raises
    ``ChecksumMismatch`` where it is not what was announced.
    """
    try:
        upload = find(settings, upload_id)
        found = upload.require_complete()
    except (UploadNotFound, UploadIncomplete):
        return None
    if found.sha256 is not None:
        return found
    sha256 = hash_file(found.path)
    upload.finish(sha256)
    return replace(found, sha256=sha256)


def require_complete(settings: Settings, upload_id: str) -> CompleteUpload:
    """Return an upload's complete file, kept for another day; the error says what is missing otherwise."""
    upload = find(settings, upload_id)
    found = upload.require_complete()
    if found.sha256 is None:
        # Whoever receives the last piece may be about to compare it with what was announced.
        with upload.locked():
            found = upload.require_complete()
    upload.keep()
    return found


def locate(settings: Settings, upload_id: str) -> Path:
    """Return the folder of an upload whose ID the platform has already checked."""
    return _folder(settings) / upload_id


def remove(settings: Settings, upload_id: str) -> None:
    """Forget an upload and its file; nothing where there is none."""
    if is_id(upload_id, prefix="up"):
        StoredUpload(_folder(settings) / upload_id).remove()


def list_ids(settings: Settings) -> list[str]:
    """List the ids of all uploads that are there."""
    return [folder.name for folder in _folder(settings).glob("up_*")]


def remove_expired(settings: Settings, *, kept: Collection[str] = ()) -> int:
    """Remove what nobody has added to for a day, but for ``kept``; how many went."""
    removed = 0
    for folder in _folder(settings).glob("up_*"):
        upload = StoredUpload(folder)
        try:
            if folder.name in kept or upload.expires_at.timestamp() > time.time():
                continue
            with upload.locked():
                upload.remove()
        except (OSError, UploadLocked, UploadNotFound):
            continue  # somebody writes to it, or was quicker
        removed += 1
    return removed


def check_room(settings: Settings, size_bytes: int) -> None:
    """Refuse what would leave too little of the disk free."""
    settings.data_root.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(settings.data_root).free
    if free_bytes - size_bytes < settings.min_free_disk_bytes:
        raise UploadDiskFull(
            "Not enough free disk space for this upload.",
            {"free_bytes": free_bytes, "kept_free_bytes": settings.min_free_disk_bytes},
        )


def clean_filename(sent: str) -> str:
    """Return the last path component, printable: the name is shown and never used as a path."""
    name = PurePosixPath(sent.replace("\\", "/")).name
    return "".join(character for character in name if character.isprintable())[:255]


def new_hash(algorithm: str) -> "hashlib._Hash":
    """Create the hash for a chunk; the protocol requires SHA-1, which protects from accidents only."""
    return hashlib.new(algorithm, usedforsecurity=False)


def _folder(settings: Settings) -> Path:
    return settings.data_root / "uploads"
