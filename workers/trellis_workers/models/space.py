"""Space on the disk for what is downloaded."""

import contextlib
import shutil
import stat
from pathlib import Path

from trellis_api.core.settings import Settings

from trellis_workers.models.hub import FetchFailed


def require_space(settings: Settings, folder: Path, size_bytes: int) -> None:
    """Raise ``FetchFailed`` if the rest of what will lie in a folder doesn't fit on its disk."""
    needed, free = max(0, size_bytes - count_bytes(folder)), shutil.disk_usage(folder).free
    if free - needed < settings.min_free_disk_bytes:
        raise FetchFailed(
            f"The model needs {needed:,} bytes, but only {free:,} bytes are free in the data root."
        )


def count_bytes(folder: Path) -> int:
    """Count the bytes of the files below a folder; those that vanish meanwhile do not count."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total
