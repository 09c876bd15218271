"""What unfinished work names in a knob (an environment, a workflow), so that it stays until that is over."""

from sqlmodel import Session, col, select
from trellis_contracts.states import ACTIVE

from trellis_api.job_pipelines import repository
from trellis_api.jobs.models import Job


def list_uses(session: Session, *, knob: str, value: str) -> list[str]:
    """Names of unfinished jobs whose knob has that value, and of pipelines under way that will start one."""
    jobs = session.exec(select(Job.name, Job.params).where(col(Job.state).in_(ACTIVE)))
    stages = (
        (name, document.get("params") or {}) for name, document in repository.list_active_documents(session)
    )
    return sorted({name for name, params in [*jobs, *stages] if params.get(knob) == value})
