"""The Celery tasks of long work on data.

Two lanes, each with one task at a time on a machine: previews, which somebody waits for, and everything
else. What is turned away here waits for the next sweep.
"""

from trellis_api.data_tasks.service import INTERACTIVE, LENGTHY
from trellis_contracts import tasks

from trellis_workers.core import leaving
from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import get_database
from trellis_workers.data.children import WarmChildren
from trellis_workers.data.run import Lane, has_waiting, linger, run_waiting
from trellis_workers.data.tidy import tidy
from trellis_workers.data.warm import KEPT_S

_LENGTHY_LOCK = "run/data-tasks.lock"
_INTERACTIVE_LOCK = "run/data-previews.lock"
_TIDY_LOCK = "run/data-tidy.lock"


@app.task(name=tasks.RUN_DATA_TASKS)
def run_data_tasks() -> None:
    """Carry out the data tasks that wait, one after the other."""
    settings = get_settings()
    with try_lock(settings.data_root / _LENGTHY_LOCK) as has_lock:
        if has_lock:
            run_waiting(Lane(settings, get_database(), is_leaving=leaving.is_leaving), LENGTHY)


@app.task(name=tasks.RUN_PREVIEWS)
def run_previews() -> None:
    """Carry out what somebody waits for, and stay for what follows: whoever looks once, looks again."""
    settings = get_settings()
    with try_lock(settings.data_root / _INTERACTIVE_LOCK) as has_lock:
        if not has_lock or not has_waiting(get_database(), INTERACTIVE):
            return
        children = WarmChildren()
        try:
            lane = Lane(settings, get_database(), children, leaving.is_leaving)
            linger(lane, INTERACTIVE, idle_s=KEPT_S, at_rest=children.end_idle)
        finally:
            children.close()


@app.task(name=tasks.TIDY_DATA)
def tidy_data() -> None:
    """Remove the files of deleted datasets and tasks, and rows that no version holds any more."""
    settings = get_settings()
    with try_lock(settings.data_root / _TIDY_LOCK) as has_lock:
        if has_lock:
            tidy(settings, get_database())
