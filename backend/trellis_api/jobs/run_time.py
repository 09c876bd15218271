"""How long the current attempt of a job has been running."""

from trellis_api.core.columns import utc_now
from trellis_api.jobs.models import Job


def current_run_s(job: Job) -> float:
    """Return the seconds of the job's current attempt so far; 0 before it starts."""
    if job.started_at is None:
        return 0.0
    return max(0.0, ((job.finished_at or utc_now()) - job.started_at).total_seconds())
