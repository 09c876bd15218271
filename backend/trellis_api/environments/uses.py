"""What works in an environment, so that it stays until that is over."""

from sqlmodel import Session

from trellis_api.job_pipelines import uses

#: The parameter that names an environment.
PARAMETER = "environment"


def list_uses(session: Session, *, environment_id: str) -> list[str]:
    """List the names of unfinished jobs that use it, and of active pipelines that are going to."""
    return uses.list_uses(session, parameter=PARAMETER, value=environment_id)
