"""Where the packages of workflows lie, and what was installed for them."""

from pathlib import Path

from trellis_api.core.settings import Settings

#: In the folder of installed packages: what they were installed for.
INSTALLED_FILE = "installed.json"
FOLDER, PACKAGES_FOLDER = "workflows", "workflow-packages"


def package_folder(settings: Settings, workflow_id: str) -> Path:
    """Return the folder of a package's files, as they were uploaded."""
    return settings.data_root / FOLDER / workflow_id


def packages_cache(settings: Settings) -> Path:
    """Return the folder of installed packages, with one folder for each set of requirements."""
    return settings.data_root / PACKAGES_FOLDER
