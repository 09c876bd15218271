"""Settles jobs of one kind that are over on Ray, where that may take longer than the reconciler's sweep has.

A lost message costs nothing, and a worker that dies leaves the job active: the next sweep begins again.
"""

import logging

from trellis_api.jobs import repository, service

from trellis_workers.core.lock import try_lock
from trellis_workers.core.ray_client import OVER, RayAwayError, get_ray
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read
from trellis_workers.jobs.reconcile import settle_over

logger = logging.getLogger(__name__)


def finish_over(kind: str, *, lock_file: str) -> bool:
    """Settle every job of the kind whose run is over, one worker at a time; whether any was."""
    with read() as session:
        running = [job for job in repository.list_holding_slots(session) if job.kind == kind]
    if not running:
        return False
    has_settled = False
    with try_lock(get_settings().data_root / lock_file) as has_lock:
        if not has_lock:
            return False
        ray = get_ray()
        for job in running:
            try:
                ray_job = ray.find(service.submission_id(job))
                if ray_job is not None and ray_job.status in OVER:
                    has_settled |= settle_over(job, ray_job)
            except RayAwayError as error:
                logger.warning("job %s: could not query the Ray cluster: %s", job.id, error)
                break
            except Exception:  # the edge of the process: one job must not hold up the others
                logger.exception("job %s could not be finished", job.id)
    return has_settled
