"""The file that a dataset's rows lay in before there were versions: it goes once it is a version.

Migration 0009 left it where it was, ``datasets/<id>/data.parquet``, for the import that it queued.
"""

import logging
from pathlib import Path

from sqlmodel import Session, col, select
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.core.uses import DATASETS
from trellis_api.data_tasks import repository as data_tasks
from trellis_api.datasets.models import DatasetVersion

log = logging.getLogger(__name__)
_FILE = "data.parquet"
#: Users of a dataset that were given the file, not the rows of a version.
_READERS = ("job", "dry_run")


def tidy_first_files(settings: Settings, database: Database) -> None:
    """Remove those that are versions and that nothing reads any more."""
    found = {path.parent.name: path for path in (settings.data_root / "datasets").glob(f"ds_*/{_FILE}")}
    if not found:
        return
    with database.read() as session:
        imported = _imported(session, list(found))
        read = _read_by_imports(session, settings)
        spent = [
            path
            for dataset_id, path in found.items()
            if dataset_id in imported
            and not any(path.resolve().is_relative_to(each) for each in read)
            and not any(use.kind in _READERS for use in DATASETS.find(session, dataset_id))
        ]
    for path in spent:
        path.unlink(missing_ok=True)
        log.info("removed %s: its rows are stored as a version", path)


def _imported(session: Session, dataset_ids: list[str]) -> set[str]:
    """Return the datasets that have a version from the import that the migration queued."""
    tasks = {f"dtk_{dataset_id.removeprefix('ds_')}": dataset_id for dataset_id in dataset_ids}
    made = select(DatasetVersion.task_id, DatasetVersion.dataset_id).where(
        col(DatasetVersion.task_id).in_(list(tasks))
    )
    return {dataset_id for task_id, dataset_id in session.exec(made) if tasks[str(task_id)] == dataset_id}


def _read_by_imports(session: Session, settings: Settings) -> list[Path]:
    """List the files and folders that waiting or running imports read."""
    sources = [task.request.get("source") or {} for task in data_tasks.list_all_unfinished(session)]
    return [(settings.data_root / each["path"]).resolve() for each in sources if each.get("kind") == "path"]
