"""The Celery task of transfers. One at a time per machine: the other processes launch and settle jobs."""

from trellis_contracts import tasks

from trellis_workers.core import leaving
from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import get_database
from trellis_workers.transfers import run

_LOCK_FILE = "run/transfers.lock"


@app.task(name=tasks.RUN_TRANSFERS)
def run_transfers() -> None:
    """Carry out every transfer that waits, or whose worker has died, one after the other."""
    settings = get_settings()
    with try_lock(settings.data_root / _LOCK_FILE) as has_lock:
        if has_lock:
            run.run_waiting(settings, get_database(), leaving.is_leaving)
