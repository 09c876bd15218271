"""What stays in the folder of a task that is over, and what goes."""

import shutil
from pathlib import Path

from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.data_tasks import repository
from trellis_contracts.data_tasks import DataTaskKind, DataTaskState

#: Kinds whose work is looked at afterwards, or gone on with.
_KEEPING = (DataTaskKind.PIPELINE, DataTaskKind.GENERATE)
#: In the folder of a run: its rows, which are in the store by now.
_SPENT = ("marked", "resources", "run/output", "run/stages")


def clear_after(settings: Settings, database: Database, task_id: str) -> None:
    """Remove what a task no longer needs; one that failed keeps what a retry goes on with."""
    with database.read() as session:
        task = repository.find_task(session, task_id=task_id)
        state = task.state if task else None
        kind = task.kind if task else None
    clear(settings.data_task_dir(task_id), kind, state)


def clear(folder: Path, kind: str | None, state: str | None) -> None:
    """Remove what the folder of a task in that state no longer needs."""
    if state in (DataTaskState.QUEUED, DataTaskState.RUNNING):
        return
    if kind not in _KEEPING:
        shutil.rmtree(folder, ignore_errors=True)
    elif state == DataTaskState.SUCCEEDED:
        for name in _SPENT:
            shutil.rmtree(folder / name, ignore_errors=True)
