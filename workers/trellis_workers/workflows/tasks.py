"""The Celery task of workflows: one installs at a time."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import get_database
from trellis_workers.workflows import installing

_LOCK = "run/workflows.lock"


@app.task(name=tasks.INSTALL_WORKFLOWS)
def install_workflows() -> None:
    """Install what waits, and remove the files of packages that are gone."""
    settings, database = get_settings(), get_database()
    with try_lock(settings.data_root / _LOCK) as has_lock:
        if has_lock:
            installing.install_waiting(settings, database)
            installing.remove_orphans(settings, database)
            installing.remove_unused_packages(settings, database)
