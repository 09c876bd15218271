"""Decides about uploads: which may begin, and which may go."""

import hashlib
from collections.abc import Collection

from sqlmodel import Session

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.core.uses import UPLOADS
from trellis_api.uploads import storage
from trellis_api.uploads.errors import UploadInUse
from trellis_api.uploads.storage import StoredUpload
from trellis_api.uploads.tus import parse_metadata


def begin(settings: Settings, *, size_bytes: int, metadata: str | None) -> StoredUpload:
    """Begin a new upload; an empty one is complete at once."""
    told = parse_metadata(metadata)
    upload = storage.create(
        settings, filename=told.filename, size_bytes=size_bytes, wanted_sha256=told.sha256
    )
    if size_bytes == 0:
        with upload.locked():
            upload.finish(hashlib.sha256().hexdigest())
    return upload


def delete(session: Session, settings: Settings, *, upload_id: str) -> None:
    """Forget an upload; refused while something reads it or writes to it."""
    upload = storage.find(settings, upload_id)
    if list_in_use(session, [upload_id]):
        raise UploadInUse("An import that is not finished reads this upload, or it is kept as a file.")
    with upload.locked():
        upload.remove()


def remove_expired(database: Database, settings: Settings) -> int:
    """Remove what nobody has added to for a day and no import waits for; how many went."""
    with database.read() as session:
        kept = list_in_use(session, storage.list_ids(settings))
    return storage.remove_expired(settings, kept=kept)


def list_in_use(session: Session, upload_ids: Collection[str]) -> set[str]:
    """List those of some uploads that unfinished imports read or that are kept as files."""
    return {upload_id for upload_id, users in UPLOADS.map(session, upload_ids).items() if users}
