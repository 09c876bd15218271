"""The Celery tasks of environments: one at a time per machine, so that other processes stay free."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import get_database
from trellis_workers.environments import calls, make

_MAKE_LOCK = "run/environments.lock"
_CALLS_LOCK = "run/tool-calls.lock"


@app.task(name=tasks.MAKE_ENVIRONMENTS)
def make_environments() -> None:
    """Make what waits (without a time limit of its own: each has one), and take in what is ready."""
    settings, database = get_settings(), get_database()
    make.take_in_waiting(settings, database)
    with try_lock(settings.data_root / _MAKE_LOCK) as has_lock:
        has_made = bool(has_lock and make.make_waiting(settings, database))
    if has_made:
        app.send_task(tasks.RUN_DATA_TASKS, ignore_result=True)


@app.task(name=tasks.CALL_TOOLS)
def call_tools() -> None:
    """Carry out the calls that wait."""
    settings = get_settings()
    with try_lock(settings.data_root / _CALLS_LOCK) as has_lock:
        if has_lock:
            calls.call_waiting(settings, get_database())
