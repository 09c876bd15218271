"""Whether the data root can take what a job writes."""

import os
import shutil

from trellis_api.core.settings import Settings
from trellis_api.jobs.errors import StorageFull, StorageUnwritable


def check_storage(settings: Settings) -> None:
    """Refuse a launch that could not write: better said now than by a dead run in an hour."""
    root = settings.data_root
    if not os.access(root, os.W_OK | os.X_OK):
        raise StorageUnwritable("The platform cannot write to its data root.", {"path": str(root)})
    try:
        free_bytes = shutil.disk_usage(root).free
    except OSError as error:
        raise StorageUnwritable("The platform cannot reach its data root.", {"path": str(root)}) from error
    if free_bytes < settings.min_free_disk_bytes:
        raise StorageFull(
            "Not enough disk space in the data root to launch a job.",
            {"free_bytes": free_bytes, "needed_bytes": settings.min_free_disk_bytes},
        )
