"""Settles evaluations that are over on Ray, with the scores they left.

Not a part of the reconciler's sweep, so that no result, however large, holds up the settling of trainings.
A lost message costs nothing, and a worker that dies leaves the job active: the next sweep begins again.
"""

import logging

from trellis_api.jobs import repository, service
from trellis_api.jobs.models import EVALUATE

from trellis_workers.core.lock import try_lock
from trellis_workers.core.ray_client import OVER, RayAwayError, get_ray
from trellis_workers.core.transaction import get_settings, read
from trellis_workers.jobs.reconcile import settle_over

logger = logging.getLogger(__name__)
_LOCK_FILE = "run/finish-evaluations.lock"


def finish_evaluations() -> bool:
    """Settle every evaluation whose run is over, one worker at a time; whether any was."""
    with read() as session:
        running = [job for job in repository.list_holding_slots(session) if job.kind == EVALUATE]
    if not running:
        return False
    has_settled = False
    with try_lock(get_settings().data_root / _LOCK_FILE) as has_lock:
        if not has_lock:
            return False
        ray = get_ray()
        for job in running:
            try:
                ray_job = ray.find(service.submission_id(job))
                if ray_job is not None and ray_job.status in OVER:
                    has_settled |= settle_over(job, ray_job)
            except RayAwayError as error:
                logger.warning("job %s: the Ray cluster cannot be asked: %s", job.id, error)
                break
            except Exception:  # the edge of the process: one evaluation must not hold up the others
                logger.exception("job %s could not be finished", job.id)
    return has_settled
