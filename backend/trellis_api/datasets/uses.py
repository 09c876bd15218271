"""What reads, or has read, a version of a dataset, and whether it may go therefore.

What is unfinished needs the rows. So does a model that was trained on them: as long as it is there it can be
told what it learned, and from which rows exactly.
"""

from sqlmodel import Session

from trellis_api.core.uses import VERSIONS, VersionKey
from trellis_api.datasets.models import DatasetVersion
from trellis_api.datasets.schemas import VersionUse


def list_uses(session: Session, version: DatasetVersion) -> list[VersionUse]:
    """List the jobs, tasks, dry runs and models that use a version, unfinished ones first."""
    found = [
        VersionUse.model_validate(use, from_attributes=True)
        for use in VERSIONS.find(session, VersionKey(version.dataset_id, version.id))
    ]
    return sorted(found, key=lambda use: not use.is_unfinished)


def list_needs(session: Session, version: DatasetVersion) -> list[VersionUse]:
    """List the uses that require the version to be kept."""
    return [use for use in list_uses(session, version) if use.is_unfinished or use.kind == "model"]
