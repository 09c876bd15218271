"""Settles exports that are over on Ray: what they wrote is hashed, and the model registered.

Not a part of the reconciler's sweep, which has a time limit: tens of gigabytes take minutes. A lost
message costs nothing, and a worker that dies leaves the job active: the next sweep begins again.
"""

import logging

from trellis_api.jobs import repository, service
from trellis_api.jobs.models import EXPORT

from trellis_workers.core.lock import try_lock
from trellis_workers.core.ray_client import OVER, RayAwayError, get_ray
from trellis_workers.core.transaction import get_settings, read
from trellis_workers.jobs.reconcile import settle_over

logger = logging.getLogger(__name__)
_LOCK_FILE = "run/finish-exports.lock"


def finish_exports() -> None:
    """Settle every export whose run is over, one after the other; one worker at a time does."""
    with read() as session:
        exports = [job for job in repository.list_holding_slots(session) if job.kind == EXPORT]
    if not exports:
        return
    with try_lock(get_settings().data_root / _LOCK_FILE) as has_lock:
        if not has_lock:
            return
        ray = get_ray()
        for job in exports:
            try:
                ray_job = ray.find(service.submission_id(job))
                if ray_job is not None and ray_job.status in OVER:
                    settle_over(job, ray_job)
            except RayAwayError as error:
                logger.warning("job %s: the Ray cluster cannot be asked: %s", job.id, error)
                return
            except Exception:  # the edge of the process: one export must not hold up the others
                logger.exception("job %s could not be finished", job.id)
