"""The Celery tasks of the fine-tuning domain."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.fine_tuning import advance
from trellis_workers.jobs import launch

_TIME_LIMIT_S = 120


@app.task(name=tasks.ADVANCE_FINE_TUNING, time_limit=_TIME_LIMIT_S)
def advance_fine_tuning() -> None:
    """Begin jobs whose files have been read; what was queued is launched at once."""
    if advance.advance_fine_tuning():
        launch.launch_queued()
