"""The Celery tasks of the rewards domain.

A dry run may take minutes. One at a time per machine, so that other processes of the worker stay free
to launch and settle jobs; what is turned away here waits for the next sweep.
"""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import get_database
from trellis_workers.rewards import dry_runs, sandbox_probe

_LOCK_FILE = "run/dry-runs.lock"

sandbox_probe.install()


@app.task(name=tasks.RUN_DRY_RUNS)
def run_dry_runs() -> None:
    """Carry out every dry run that waits, one after the other."""
    settings = get_settings()
    with try_lock(settings.data_root / _LOCK_FILE) as has_lock:
        if has_lock:
            dry_runs.run_waiting(settings, get_database())
