"""Where the files of a report lie."""

from pathlib import Path

from trellis_api.core.settings import Settings


def report_folder(settings: Settings, report_id: str) -> Path:
    """Return the report's folder, with one file per format."""
    return settings.data_root / "reports" / report_id
