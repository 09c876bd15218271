"""Where the files of environments lie."""

from pathlib import Path

from trellis_api.core.settings import Settings

FOLDER = "environments"


def environment_folder(settings: Settings, environment_id: str) -> Path:
    """All of an environment's files."""
    return settings.data_root / FOLDER / environment_id


def content_folder(settings: Settings, environment_id: str) -> Path:
    """What was made: the folder with ``environment.json`` that agents are pointed to."""
    return environment_folder(settings, environment_id) / "content"


def rows_folder(settings: Settings, environment_id: str) -> Path:
    """The rows that become datasets: a folder for each, a file for each split."""
    return environment_folder(settings, environment_id) / "rows"
