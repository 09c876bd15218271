"""Removes what nothing leads to any more: files of deleted tasks and datasets, uploads, transfers, rows."""

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path

from sqlmodel import col, select
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import repository as data_tasks
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets.models import Dataset, DatasetVersion
from trellis_api.datasets.store import open_store
from trellis_api.uploads import service as uploads
from trellis_contracts.data_tasks import DATA_TASK_FINISHED, DataTaskState
from trellis_data.versions.records import StoreProblem
from trellis_data.versions.upkeep import Collected, collect_garbage

from trellis_workers.data.files import DRAFT
from trellis_workers.data.first_files import tidy_first_files
from trellis_workers.data.leftovers import clear_after, clear_run, needs_nothing
from trellis_workers.transfers.tidy import tidy_transfers

log = logging.getLogger(__name__)
#: How long to wait until nobody writes a version; the next sweep tries again.
_WAIT_S = 5.0


def tidy(settings: Settings, database: Database) -> None:
    """Remove all of it."""
    tidy_tasks(settings, database)
    tidy_datasets(settings, database)
    tidy_quarantines(settings, database)
    tidy_first_files(settings, database)
    uploads.remove_expired(database, settings)
    tidy_transfers(settings, database)
    collect(settings, database)


def tidy_tasks(settings: Settings, database: Database) -> None:
    """Remove folders of deleted tasks or datasets, and what ended tasks don't need any more.

    Mostly their worker has seen to that; one that died, or a task that was cancelled after that, leaves it.
    """
    # The folders first: one that comes later belongs to a task that is there.
    folders = _folders(settings.data_task_dir("x").parent)
    with database.read() as session:
        kinds = data_tasks.list_kinds_and_states(session, task_ids=[each.name for each in folders])
        has_dataset = col(DataTask.dataset_id).in_(select(Dataset.id))
        orphans = set(session.exec(select(DataTask.id).where(~has_dataset)).all())
    for folder in folders:
        if folder.name in orphans:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        kind, state = kinds.get(folder.name, (None, None))
        if needs_nothing(kind, state):
            clear_after(settings, database, folder.name)
        elif state == DataTaskState.SUCCEEDED:
            clear_run(folder)


def tidy_datasets(settings: Settings, database: Database) -> None:
    """Remove the quarantines of deleted datasets."""
    folders = [each for each in _folders(settings.data_root / "datasets") if each.name.startswith("ds_")]
    with database.read() as session:
        ids = [each.name for each in folders]
        known = set(session.exec(select(Dataset.id).where(col(Dataset.id).in_(ids))).all())
    for folder in folders:
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def tidy_quarantines(settings: Settings, database: Database) -> None:
    """Remove rows that deleted imports rejected, and files that ended imports left incomplete."""
    datasets = settings.data_root / "datasets"
    paths = [*datasets.glob("ds_*/quarantine/dtk_*"), *datasets.glob("ds_*/quarantine/index/dtk_*")]
    with database.read() as session:
        ids = {path.name.partition(".")[0] for path in paths}
        kinds = data_tasks.list_kinds_and_states(session, task_ids=ids)
    for path in paths:
        _, state = kinds.get(path.name.partition(".")[0], (None, None))
        if state is None or (path.suffix == DRAFT and state in DATA_TASK_FINISHED):
            path.unlink(missing_ok=True)


def collect(settings: Settings, database: Database, *, wait_s: float = _WAIT_S) -> Collected | None:
    """Collect rows that no version in the database holds; None while versions are being written."""

    def keep() -> Iterable[str]:
        """List the versions to keep. Called when nobody writes: all published versions are known then."""
        with database.read() as session:
            versions = set(session.exec(select(DatasetVersion.id)).all())
            tasks = data_tasks.list_all_unfinished(session)
            return versions | {task.version_id for task in tasks if task.version_id}

    try:
        gone = collect_garbage(open_store(settings), keep, wait_s=wait_s)
    except StoreProblem as problem:
        log.info("skipped row clean-up: %s", problem.message)
        return None
    if gone.files:
        log.info("removed %d unreferenced row files, %d bytes", gone.files, gone.size_bytes)
    return gone


def _folders(parent: Path) -> list[Path]:
    return [each for each in parent.iterdir() if each.is_dir()] if parent.is_dir() else []
