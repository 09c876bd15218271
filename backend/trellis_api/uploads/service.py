"""Decides about uploads: which may begin, and which may go."""

import hashlib

from sqlmodel import Session, col, select
from trellis_contracts.data_tasks import DATA_TASK_FINISHED, DataTaskKind

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks.models import DataTask
from trellis_api.fine_tuning.repository import list_uploads
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
    if upload_id in list_in_use(session):
        raise UploadInUse("An import that is not finished reads this upload, or it is kept as a file.")
    with upload.locked():
        upload.remove()


def remove_expired(database: Database, settings: Settings) -> int:
    """Remove what nobody has added to for a day and no import waits for; how many went."""
    with database.read() as session:
        kept = list_in_use(session)
    return storage.remove_expired(settings, kept=kept)


def list_in_use(session: Session) -> set[str]:
    """List the ids of the uploads that unfinished imports read, and of those that are kept as files."""
    requests = session.exec(
        select(DataTask.request).where(
            col(DataTask.state).not_in(DATA_TASK_FINISHED), col(DataTask.kind) == DataTaskKind.IMPORT
        )
    )
    return {str(request.get("source", {}).get("upload", "")) for request in requests} | list_uploads(session)
