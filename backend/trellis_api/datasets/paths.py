"""Which files under the data root may be read as rows: those that people put there, not our own."""

from pathlib import Path

from trellis_data.reading.kinds import can_be_read
from trellis_data.reading.sources import LocalSource, SourceUnavailable, source_inside

from trellis_api.core.settings import Settings

#: Folders with tokens, settings, sockets, unfinished files, and rows that are part of versions.
OWN_FOLDERS = frozenset(
    {"data-tasks", "jobs", "logs", "postgres", "ray", "redis", "run", "uploads", "versions"}
)


def local_source(settings: Settings, path: str) -> LocalSource:
    """Return the file or folder at a path relative to the data root.

    Raises ``SourceUnavailable`` for a path that leads out of it, into the platform's own folders, to hidden
    files, or to a file whose name promises no rows (the database and the admin token are such files).
    """
    source = source_inside(settings.data_root, path)
    real = own_path(settings, path)
    if real.is_file() and not can_be_read(real.name):
        raise SourceUnavailable(
            "source_no_rows", f"'{path[:200]}' is not a JSONL, JSON, CSV, Parquet or Arrow file."
        )
    return source


def own_path(settings: Settings, path: str) -> Path:
    """Resolve a path that is relative to the data root and leads to a user's own files.

    Raises ``SourceUnavailable`` for one out of it, into the platform's own folders, or to its own files.
    """
    source_inside(settings.data_root, path)
    root = settings.data_root.resolve()
    # Of the place that a link leads to, not of the link.
    real = (root / path).resolve()
    parts = real.relative_to(root).parts
    if not parts:
        raise SourceUnavailable("source_private", "Specify a file or folder in the data root.")
    if parts[0] in OWN_FOLDERS or any(part.startswith(".") for part in parts):
        raise SourceUnavailable(
            "source_private",
            f"'{path[:200]}' is hidden or reserved by the platform. Put your data in a separate folder.",
        )
    return real
