"""Removes the files of checkpoints that were given up (``trellis_api/jobs/checkpoints/service.py``).

A lost message costs nothing: beat calls ``prune_checkpoints`` now and then.
"""

import logging
import shutil
from pathlib import Path

from trellis_api.core.columns import utc_now
from trellis_api.jobs import repository, service
from trellis_api.jobs.models import Checkpoint

from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)
_DOOMED_PREFIX = ".removed-"


def prune_checkpoints() -> None:
    """Remove what has been given up; what cannot be removed now is tried again."""
    with read() as session:
        rows = repository.list_pruned_with_files(session)
    if not rows:
        return
    with try_lock(get_settings().data_root / "run" / "prune.lock") as has_lock:
        if has_lock:
            for row in rows:
                _prune(row)


def _prune(row: Checkpoint) -> None:
    folder = service.find_folder(row, row.path, data_root=get_settings().data_root)
    doomed = _locate_doomed(row)
    try:
        # What an earlier try has left; here, for the lock below is no place to remove gigabytes.
        if doomed.exists():
            shutil.rmtree(doomed)
        if folder is not None:
            if not _set_aside(row, folder, doomed):
                return
            shutil.rmtree(doomed)
    except OSError as error:
        logger.warning(
            "job %s: the step-%d checkpoint cannot be removed yet: %s", row.job_id, row.step, error
        )
        return
    with write() as session:
        job = repository.lock_job(session, job_id=row.job_id)
        current = repository.find_checkpoint(session, job_id=row.job_id, step=row.step)
        if job is None or current is None or current.pruned_at is None:
            return
        current.removed_at = utc_now()
        session.add(current)
        service.announce(session, job=job)
    logger.info("job %s: step-%d checkpoint removed", row.job_id, row.step)


def _set_aside(row: Checkpoint, folder: Path, doomed: Path) -> bool:
    """Rename the folder under the job's lock, so that half a folder never looks like a whole one.

    False where the checkpoint was written again meanwhile, which it is under the same name.
    """
    with write() as session:
        job = repository.lock_job(session, job_id=row.job_id)
        current = repository.find_checkpoint(session, job_id=row.job_id, step=row.step)
        if job is None or current is None or current.pruned_at is None:
            return False
        if service.may_be_written(job, row.step):
            return False
        folder.rename(doomed)
    return True


def _locate_doomed(row: Checkpoint) -> Path:
    return get_settings().checkpoint_dir(row.job_id) / f"{_DOOMED_PREFIX}{row.step}"
