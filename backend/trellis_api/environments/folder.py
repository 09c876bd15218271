"""Where the files of environments lie."""

from pathlib import Path

from trellis_api.core.settings import Settings

FOLDER = "environments"


def environment_folder(settings: Settings, environment_id: str) -> Path:
    """Return the folder with all of an environment's files."""
    return settings.data_root / FOLDER / environment_id


def content_folder(settings: Settings, environment_id: str) -> Path:
    """Return the folder of the generated content, with the ``environment.json`` that agents read."""
    return environment_folder(settings, environment_id) / "content"


def rows_folder(settings: Settings, environment_id: str) -> Path:
    """Return the folder of the rows that become datasets: one folder for each, one file for each split."""
    return environment_folder(settings, environment_id) / "rows"
