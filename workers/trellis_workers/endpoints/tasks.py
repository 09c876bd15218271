"""The Celery tasks of the endpoints domain."""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.endpoints import idle, strays

_TIME_LIMIT_S = 60


@app.task(name=tasks.STOP_IDLE_ENDPOINTS, time_limit=_TIME_LIMIT_S)
def stop_idle_endpoints() -> None:
    """Stop endpoints that nobody uses, and what none refers to."""
    strays.stop_orphans()
    strays.give_up_lost_loads()
    idle.stop_idle_endpoints()
