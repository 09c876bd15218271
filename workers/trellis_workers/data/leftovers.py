"""What stays in the folder of a task that is over, and what goes."""

import logging
import shutil
import uuid
from pathlib import Path

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import repository
from trellis_contracts.data_tasks import DATA_TASK_FINISHED, DataTaskKind, DataTaskState

log = logging.getLogger(__name__)
#: Kinds whose work is looked at afterwards, or gone on with.
_KEEPING = (DataTaskKind.PIPELINE, DataTaskKind.GENERATE)
#: In the folder of a run: its rows, which are in the store by now.
_SPENT = ("marked", "resources", "run/output", "run/stages")


def clear_after(settings: Settings, database: Database, task_id: str) -> None:
    """Remove what a task no longer needs; a run that failed keeps what a retry goes on with."""
    folder = settings.data_task_dir(task_id)
    aside: Path | None = None
    with database.write() as session:
        # Locked: whoever takes the task up again finds all of its folder or nothing of it.
        task = repository.lock_task(session, task_id=task_id)
        kind, state = (task.kind, task.state) if task else (None, None)
        if needs_nothing(kind, state):
            aside = _put_aside(folder)
    if aside is not None:
        shutil.rmtree(aside, ignore_errors=True)
    elif state == DataTaskState.SUCCEEDED:
        clear_run(folder)


def needs_nothing(kind: str | None, state: str | None) -> bool:
    """Tell whether such a task's folder can be deleted as a whole; without a state the task doesn't exist."""
    return state is None or (state in DATA_TASK_FINISHED and kind not in _KEEPING)


def clear_run(folder: Path) -> None:
    """Remove the rows from the folder of a run that has succeeded; its report stays."""
    for name in _SPENT:
        shutil.rmtree(folder / name, ignore_errors=True)


def _put_aside(folder: Path) -> Path | None:
    """Give the folder a name that is no task's, in one step; None where there is none."""
    aside = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return None
    except OSError:
        log.exception("could not remove the folder of data task %s; it will be cleaned up later", folder.name)
        return None
    return aside
