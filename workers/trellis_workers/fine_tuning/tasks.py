"""The Celery tasks of the fine-tuning domain."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.fine_tuning import advance, wandb_reports
from trellis_workers.jobs import launch

_TIME_LIMIT_S = 120
_REPORTS_LOCK = "run/wandb.lock"


@app.task(name=tasks.ADVANCE_FINE_TUNING, time_limit=_TIME_LIMIT_S)
def advance_fine_tuning() -> None:
    """Begin jobs whose files have been read; what was queued is launched at once."""
    if advance.advance_fine_tuning():
        launch.launch_queued()


@app.task(name=tasks.SEND_REPORTS, time_limit=_TIME_LIMIT_S)
def send_reports() -> None:
    """Send new metrics of fine-tuning jobs to the services that they name: one worker at a time."""
    with try_lock(get_settings().data_root / _REPORTS_LOCK) as has_lock:
        if has_lock:
            wandb_reports.send_reports()
