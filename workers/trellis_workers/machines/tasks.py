"""The Celery task of the machines' figures."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.machines import sample

_TIME_LIMIT_S = 30


@app.task(name=tasks.SAMPLE_MACHINES, time_limit=_TIME_LIMIT_S)
def sample_machines() -> None:
    """Keep what the nodes measure now."""
    sample.sample_machines()
