"""Stops a run: ask it to checkpoint and leave; after the grace period end its Ray job.

``trellis_api/jobs/service.py::request_stop`` has set the row to STOPPING. The run hears
of it in the reply to its next heartbeat; the stop file tells it at once, and while the
API is away too. The reconciler settles the row when the run is gone.
"""

import logging

from trellis_api.core.columns import utc_now
from trellis_api.jobs import repository, service
from trellis_api.jobs.models import Job
from trellis_contracts.attempt import STOP_FILE
from trellis_contracts.states import JobState

from trellis_workers.core.ray_client import RayJobs
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read

logger = logging.getLogger(__name__)


def request_stop(job_id: str) -> None:
    """Tell a run that is to stop, without waiting for its next heartbeat."""
    with read() as session:
        job = repository.find_job(session, job_id=job_id)
    if job is None or job.state != JobState.STOPPING:
        return
    attempt_dir = get_settings().attempt_dir(job.id, job.attempt)
    if attempt_dir.is_dir():
        (attempt_dir / STOP_FILE).touch()
        logger.info("job %s: stop requested for attempt %d", job.id, job.attempt)


def end_overdue_stop(ray: RayJobs, job: Job) -> None:
    """End the Ray job of a run that has not left within the grace period."""
    if job.stop_requested_at is None:
        return
    waited_s = (utc_now() - job.stop_requested_at).total_seconds()
    if waited_s > get_settings().stop_grace_s:
        logger.warning(
            "job %s did not exit within %.0f s after the stop request, killing it", job.id, waited_s
        )
        ray.stop(service.submission_id(job))
