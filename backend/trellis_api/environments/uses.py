"""What works in an environment, so that it stays until that is over."""

from sqlmodel import Session

from trellis_api.environments import repository
from trellis_api.job_pipelines import repository as job_pipelines

#: The knob that names an environment.
KNOB = "environment"


def list_uses(session: Session, *, environment_id: str) -> list[str]:
    """Names of unfinished jobs that use it, and of pipelines under way that are going to."""
    jobs = [
        name
        for name, params in repository.list_unfinished_jobs(session)
        if params.get(KNOB) == environment_id
    ]
    pipelines = [
        name
        for name, document in job_pipelines.list_active_documents(session)
        if (document.get("params") or {}).get(KNOB) == environment_id
    ]
    return sorted({*jobs, *pipelines})
