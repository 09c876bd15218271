"""What unfinished work names in a parameter (an environment, a workflow): it stays until that is over."""

from sqlmodel import Session, col, select
from trellis_contracts.states import ACTIVE

from trellis_api.job_pipelines import repository
from trellis_api.jobs.models import Job


def list_uses(session: Session, *, parameter: str, value: str) -> list[str]:
    """List unfinished jobs whose parameter has that value, and active pipelines that will start one."""
    return map_uses(session, parameter=parameter).get(value, [])


def map_uses(session: Session, *, parameter: str) -> dict[str, list[str]]:
    """Return the names of active jobs and pipelines that use each value of the parameter."""
    jobs = session.exec(select(Job.name, Job.params).where(col(Job.state).in_(ACTIVE)))
    stages = (
        (name, document.get("params") or {}) for name, document in repository.list_active_documents(session)
    )
    found: dict[str, set[str]] = {}
    for name, params in [*jobs, *stages]:
        if isinstance(value := params.get(parameter), str):
            found.setdefault(value, set()).add(name)
    return {value: sorted(names) for value, names in found.items()}
