"""The Celery tasks of the models domain.

A download may take hours. One at a time per machine, so that the other processes of
the worker stay free to launch and settle jobs; what is turned away here is tried again for
as long as a cancelled one takes to end, and then waits for the next sweep.
"""

from trellis_contracts import tasks

from trellis_workers.core.app import app
from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import get_database
from trellis_workers.models import fetch

_LOCK_FILE = "run/fetch-models.lock"
#: A cancelled download ends within seconds.
_TRIES, _PAUSE_S = 5, 2.0


@app.task(name=tasks.FETCH_MODEL)
def fetch_model(model_id: str, tries: int = _TRIES) -> None:
    """Fetch one model from the hub; while another one is on its way, try again a few times."""
    settings = get_settings()
    with try_lock(settings.data_root / _LOCK_FILE) as has_lock:
        if has_lock:
            fetch.fetch_model(settings, get_database(), model_id=model_id)
    if not has_lock and tries > 1 and fetch.is_waiting(get_database(), model_id=model_id):
        fetch_model.apply_async((model_id, tries - 1), countdown=_PAUSE_S)


@app.task(name=tasks.FETCH_PENDING_MODELS)
def fetch_pending_models() -> None:
    """Fetch every model that waits, or whose fetch was lost, one after the other."""
    settings = get_settings()
    with try_lock(settings.data_root / _LOCK_FILE) as has_lock:
        if has_lock:
            fetch.fetch_pending(settings, get_database())
