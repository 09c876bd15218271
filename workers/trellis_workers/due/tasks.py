"""The Celery task that beat calls every few seconds: it sends the sweeps that have something to do."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.core.configuration import EXPIRES_S
from trellis_workers.core.transaction import read
from trellis_workers.due.find import find_due

_TIME_LIMIT_S = 60


@app.task(name=tasks.LOOK_FOR_WORK, time_limit=_TIME_LIMIT_S)
def look_for_work() -> None:
    """Send what is due; a message that no worker takes in time is sent again by the next look."""
    for name in find_due(read):
        app.send_task(name, ignore_result=True, expires=EXPIRES_S)
