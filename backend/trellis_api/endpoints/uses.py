"""What endpoints use: adapters that the engine of their base serves or is to load, and what jobs call."""

from collections.abc import Collection, Iterator

from sqlmodel import Session, col, or_, select
from trellis_contracts.states import ACTIVE
from trellis_recipes.workflows.source import AUXILIARY

from trellis_api.core.uses import Use
from trellis_api.endpoints.auxiliary import find_model_ids, list_our_models
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.openai.names import find_job_id, find_step
from trellis_api.jobs import repository
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.models import Job

#: Of endpoints and their jobs: an adapter is in the engine of this attempt, or has an engine of its own.
_IS_WANTED = or_(col(Endpoint.engine_id).is_(None), col(Endpoint.asked_attempt) == col(Job.attempt))


def find_of_models(session: Session, model_ids: Collection[str]) -> dict[str, list[Use]]:
    """List endpoints that serve adapters of these ids, and unfinished jobs whose agent code calls a model."""
    found = _list_serving(session, model_ids)
    for use, named in _list_calling(session):
        for model_id in find_model_ids(session, named) & found.keys():
            found[model_id].append(use)
    return found


def list_served_steps(session: Session, job_id: str) -> set[int]:
    """List the steps of a job whose checkpoints endpoints serve, or unfinished jobs' agent code calls."""
    query = (
        select(Endpoint.target_step)
        .join(Job, col(Job.id) == col(Endpoint.job_id))
        .where(col(Endpoint.target_job_id) == job_id, col(Job.state).in_(ACTIVE), _IS_WANTED)
    )
    served = {int(step) for step in session.exec(query) if step is not None}
    for _, named in _list_calling(session):
        served |= {step for name in named if (step := find_step(name, job_id=job_id)) is not None}
    return served


def release_checkpoints(session: Session, job: Job) -> None:
    """Give up checkpoints of other jobs that were only kept because this one served or called them."""
    served = session.exec(select(Endpoint.target_job_id).where(Endpoint.job_id == job.id)).all()
    called = {find_job_id(name) for name in list_our_models(job.params.get(AUXILIARY))}
    # In one order, so that two jobs that end at once don't wait for each other.
    for job_id in sorted({job_id for job_id in {*served, *called} if job_id is not None}):
        release_target(session, job_id)


def release_target(session: Session, job_id: str) -> None:
    """Give up the job's checkpoints that nothing needs any more."""
    job = repository.lock_job(session, job_id=job_id)
    if job is not None:
        checkpoints.apply_retention(session, job=job)


def _list_calling(session: Session) -> Iterator[tuple[Use, set[str]]]:
    """List unfinished jobs that name auxiliary models, with these as they name them."""
    query = select(Job.id, Job.name, Job.params).where(col(Job.state).in_(ACTIVE)).order_by(Job.name)
    for job_id, name, params in session.exec(query):
        if named := list_our_models(params.get(AUXILIARY)):
            yield Use("job", job_id, name), named


def _list_serving(session: Session, model_ids: Collection[str]) -> dict[str, list[Use]]:
    """List endpoints of these models that start or are ready, where their job names the base model instead.

    A model whose job names it is a use of that job.
    """
    query = (
        select(Endpoint.target_model_id, Endpoint.id, Endpoint.name)
        .join(Job, col(Job.id) == col(Endpoint.job_id))
        .where(col(Endpoint.target_model_id).in_(list(model_ids)), col(Job.state).in_(ACTIVE), _IS_WANTED)
        .where(col(Job.model_id).is_distinct_from(col(Endpoint.target_model_id)))
        .order_by(col(Endpoint.name))
    )
    found: dict[str, list[Use]] = {model_id: [] for model_id in model_ids}
    for model_id, endpoint_id, name in session.exec(query):
        found[str(model_id)].append(Use("endpoint", endpoint_id, name))
    return found
