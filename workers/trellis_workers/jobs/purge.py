"""Removes the files of deleted jobs: ``delete_job`` leaves a tombstone, which goes when the files are gone.

A lost message costs nothing: beat calls ``purge_deleted`` now and then.
"""

import logging
import shutil
from pathlib import Path

from trellis_api.core.ids import is_id
from trellis_api.jobs import repository

from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)


def purge_deleted() -> None:
    """Remove the folders of all jobs with a tombstone; what cannot be removed now keeps its tombstone."""
    with read() as session:
        job_ids = repository.list_purges(session)
    if not job_ids:
        return
    with try_lock(get_settings().data_root / "run" / "purge.lock") as has_lock:
        if has_lock:
            for job_id in job_ids:
                _purge(job_id)


def _purge(job_id: str) -> None:
    if not is_id(job_id, prefix="job"):
        logger.error("refusing to remove the files of %r: not a job", job_id)
        return
    try:
        _remove_folder(get_settings().job_dir(job_id))
    except OSError as error:
        logger.warning("job %s: its files cannot be removed yet: %s", job_id, error)
        return
    with write() as session:
        repository.delete_purge(session, job_id=job_id)
    logger.info("job %s: files removed", job_id)


def _remove_folder(folder: Path) -> None:
    """Remove it in two steps that a killed worker may be interrupted in; a link goes without its target."""
    doomed = folder.with_name(f".deleted-{folder.name}")
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        # Out of the way first: half a folder must not look like a whole one.
        folder.rename(doomed)
    if doomed.exists():
        shutil.rmtree(doomed)
