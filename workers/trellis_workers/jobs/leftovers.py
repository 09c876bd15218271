"""Removes what exports that did not succeed have left: ``settle`` writes a row, which goes with the folders.

A lost message costs nothing: beat calls ``remove_leftovers`` now and then.
"""

import logging
import shutil
from pathlib import Path

from trellis_api.core.ids import is_id
from trellis_api.jobs import repository
from trellis_api.jobs.models import ExportLeftover
from trellis_api.models.repository import find_model
from trellis_api.models.service import model_folder, staging_folder
from trellis_contracts.states import ACTIVE

from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)
_LOCK_FILE = "run/leftovers.lock"
_DOOMED_PREFIX = ".removed-"


def remove_leftovers() -> None:
    """Remove the folders of all failed exports; what cannot be removed now is tried again."""
    with read() as session:
        rows = repository.list_leftovers(session)
    if not rows:
        return
    with try_lock(get_settings().data_root / _LOCK_FILE) as has_lock:
        if has_lock:
            for row in rows:
                _remove(row)


def _remove(row: ExportLeftover) -> None:
    if not is_id(row.model_id, prefix="mdl"):
        logger.error("job %s: refusing to remove the folder of %r: not a model", row.job_id, row.model_id)
        return
    try:
        # What an earlier try has left; here, for the lock below is no place to remove gigabytes.
        _remove_doomed(row)
        if not _set_aside(row):
            return
        _remove_doomed(row)
    except OSError as error:
        logger.warning("job %s: its leftover files cannot be removed yet: %s", row.job_id, error)
        return
    with write() as session:
        repository.delete_leftover(session, row)
    logger.info("job %s: leftover files removed", row.job_id)


def _set_aside(row: ExportLeftover) -> bool:
    """Move the folders out of the way, under the job's lock; False where a new attempt writes to them."""
    with write() as session:
        job = repository.lock_job(session, job_id=row.job_id)
        is_wanted = job is not None and job.state in ACTIVE
        if is_wanted or find_model(session, model_id=row.model_id) is not None:
            repository.delete_leftover(session, row)
            return False
        for folder, doomed in zip(_locate(row.model_id), _locate_doomed(row.model_id), strict=True):
            if folder.exists():
                folder.rename(doomed)
    return True


def _remove_doomed(row: ExportLeftover) -> None:
    for doomed in _locate_doomed(row.model_id):
        if doomed.exists():
            shutil.rmtree(doomed)


def _locate(model_id: str) -> list[Path]:
    settings = get_settings()
    return [staging_folder(settings, model_id), model_folder(settings, model_id)]


def _locate_doomed(model_id: str) -> list[Path]:
    return [folder.with_name(f"{_DOOMED_PREFIX}{folder.name}") for folder in _locate(model_id)]
