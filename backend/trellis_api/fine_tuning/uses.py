"""What fine-tuning uses: uploads that are kept as files."""

from collections.abc import Collection

from sqlmodel import Session, col, select

from trellis_api.core.uses import Use
from trellis_api.fine_tuning.models import OpenAiFile


def find_of_uploads(session: Session, upload_ids: Collection[str]) -> dict[str, list[Use]]:
    """List the files that uploads are kept as."""
    query = select(OpenAiFile).where(col(OpenAiFile.upload_id).in_(list(upload_ids)))
    found: dict[str, list[Use]] = {}
    for file in session.exec(query):
        found.setdefault(file.upload_id, []).append(Use("fine_tuning_file", file.id, file.filename))
    return found
