"""Removes the files of deleted evaluations and reports: a row stands for each until they are gone.

A lost message costs nothing: beat calls ``tidy_evaluations`` now and then.
"""

import logging
import shutil
from pathlib import Path

from trellis_api.core.ids import is_id
from trellis_api.evaluations import repository
from trellis_api.evaluations.folder import evaluation_folder
from trellis_api.reports.folder import report_folder

from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)
_LOCK_FILE = "run/tidy-evaluations.lock"
_FOLDERS = {"ev": evaluation_folder, "rep": report_folder}


def tidy_evaluations() -> None:
    """Remove the folders of all that were deleted; what cannot be removed now is tried again."""
    with read() as session:
        leftovers = repository.list_leftovers(session)
    if not leftovers:
        return
    with try_lock(get_settings().data_root / _LOCK_FILE) as has_lock:
        if has_lock:
            for leftover_id in leftovers:
                _remove(leftover_id)


def _remove(leftover_id: str) -> None:
    locate = next((found for prefix, found in _FOLDERS.items() if is_id(leftover_id, prefix=prefix)), None)
    if locate is None:
        logger.error("refusing to remove the files of %r: not an evaluation or report", leftover_id)
        return
    try:
        _remove_folder(locate(get_settings(), leftover_id))
    except OSError as error:
        logger.warning("%s: its files cannot be removed yet: %s", leftover_id, error)
        return
    with write() as session:
        repository.delete_leftover(session, leftover_id=leftover_id)
    logger.info("%s: files removed", leftover_id)


def _remove_folder(folder: Path) -> None:
    """Rename the folder before removing it: a killed worker must not leave half of it under its name."""
    doomed = folder.with_name(f".deleted-{folder.name}")
    if folder.exists():
        folder.rename(doomed)
    if doomed.exists():
        shutil.rmtree(doomed)
