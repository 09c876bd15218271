"""Queries on endpoints."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import and_, exists, not_, or_, update
from sqlmodel import Session, col, select, tuple_
from trellis_contracts.states import ACTIVE, HOLDS_SLOTS, JobState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id
from trellis_api.endpoints.models import Endpoint
from trellis_api.jobs.models import SERVE, Checkpoint, Job
from trellis_api.jobs.service import STOPPABLE


def find_endpoint(session: Session, *, endpoint_id: str) -> Endpoint | None:
    """Return the endpoint with this ID; None for anything that is not an ID."""
    if not is_id(endpoint_id, prefix="ep"):
        return None
    return session.get(Endpoint, endpoint_id, populate_existing=True)


def find_by_job(session: Session, *, job_id: str) -> Endpoint | None:
    """Return the endpoint whose engine this job runs, not those that share the engine."""
    statement = select(Endpoint).where(Endpoint.job_id == job_id, col(Endpoint.engine_id).is_(None))
    return session.exec(statement, execution_options={"populate_existing": True}).first()


def find_of_model(session: Session, *, model_id: str) -> Endpoint | None:
    """Return the endpoint of a model."""
    return session.exec(select(Endpoint).where(Endpoint.target_model_id == model_id)).first()


def find_of_checkpoint(session: Session, *, job_id: str, step: int) -> Endpoint | None:
    """Return the endpoint of a checkpoint."""
    of_it = (Endpoint.target_job_id == job_id, Endpoint.target_step == step)
    return session.exec(select(Endpoint).where(*of_it)).first()


def list_older(session: Session, *, job_id: str, step: int) -> Sequence[tuple[Endpoint, Job]]:
    """List endpoints of older checkpoints whose own engine runs and can take other weights, newest first."""
    of_it = (Endpoint.target_job_id == job_id, col(Endpoint.target_step) < step)
    can = (col(Endpoint.engine_id).is_(None), col(Endpoint.is_replaceable), Job.state == JobState.RUNNING)
    statement = select(Endpoint, Job).join(Job, col(Job.id) == col(Endpoint.job_id)).where(*of_it, *can)
    return session.exec(statement.order_by(col(Endpoint.target_step).desc())).all()


def list_sharing(session: Session, *, job_id: str, attempt: int) -> Sequence[Endpoint]:
    """List the adapters that a job's engine is to serve in this attempt, in the order of their creation."""
    wanted = (
        Endpoint.job_id == job_id,
        col(Endpoint.engine_id).is_not(None),
        Endpoint.asked_attempt == attempt,
    )
    in_order = (col(Endpoint.created_at), col(Endpoint.id))
    return session.exec(select(Endpoint).where(*wanted).order_by(*in_order)).all()


def list_sharing_of_jobs(session: Session, *, job_ids: Collection[str]) -> Sequence[Endpoint]:
    """List the adapters that the engines of these jobs serve now, or were asked to load."""
    statement = select(Endpoint).join(Job, col(Job.id) == col(Endpoint.job_id))
    wanted = (col(Endpoint.engine_id).is_not(None), col(Endpoint.asked_attempt) == col(Job.attempt))
    return session.exec(statement.where(col(Endpoint.job_id).in_(job_ids), *wanted)).all()


def list_holding_slots(session: Session, *, on_cpu: bool = False) -> Sequence[tuple[Endpoint, Job]]:
    """List endpoints with a launched engine of their own that holds slots, or none (``on_cpu``), for now."""
    statement = select(Endpoint, Job).join(Job, col(Job.id) == col(Endpoint.job_id))
    takes = col(Job.gpus) == 0 if on_cpu else col(Job.gpus) > 0
    wanted = (col(Endpoint.engine_id).is_(None), col(Job.state).in_(HOLDS_SLOTS), takes)
    return session.exec(statement.where(*wanted), execution_options={"populate_existing": True}).all()


def map_names(session: Session, *, endpoint_ids: Collection[str]) -> dict[str, str]:
    """Map the ids of those endpoints that exist to their names."""
    if not endpoint_ids:
        return {}
    wanted = col(Endpoint.id).in_(endpoint_ids)
    return dict(session.exec(select(Endpoint.id, Endpoint.name).where(wanted)).all())


def list_endpoints(
    session: Session, *, is_up: bool | None = None, before: tuple[datetime, str] | None, limit: int
) -> list[tuple[Endpoint, Job]]:
    """List endpoints with their jobs, newest first, after the position of the last row seen."""
    statement = select(Endpoint, Job).join(Job, col(Job.id) == col(Endpoint.job_id))
    if is_up is not None:
        # As `service.state_of`: an adapter is down as soon as its engine is not to serve it in this attempt.
        unloaded = and_(
            col(Endpoint.engine_id).is_not(None),
            col(Endpoint.asked_attempt).is_distinct_from(col(Job.attempt)),
        )
        is_down = or_(unloaded, col(Job.state).not_in(ACTIVE))
        statement = statement.where(not_(is_down) if is_up else is_down)
    if before is not None:
        statement = statement.where(tuple_(col(Endpoint.created_at), col(Endpoint.id)) < before)
    newest = statement.order_by(col(Endpoint.created_at).desc(), col(Endpoint.id).desc())
    return list(session.exec(newest.limit(limit)).all())


def list_running(session: Session) -> Sequence[tuple[Endpoint, Job]]:
    """List running endpoints, loaded or not: adapters first, since they keep the engine that they share."""
    statement = select(Endpoint, Job).join(Job, col(Job.id) == col(Endpoint.job_id))
    in_order = (col(Endpoint.engine_id).is_(None), col(Endpoint.created_at), col(Endpoint.id))
    return session.exec(statement.where(Job.state == JobState.RUNNING).order_by(*in_order)).all()


def list_orphans(session: Session) -> Sequence[str]:
    """List the jobs of engines that have no endpoint and were not told to stop yet."""
    of_it = (col(Endpoint.job_id) == col(Job.id), col(Endpoint.engine_id).is_(None))
    wanted = (Job.kind == SERVE, col(Job.state).in_(STOPPABLE), ~exists().where(*of_it))
    return session.exec(select(Job.id).where(*wanted)).all()


def list_jobs_with_adapters(session: Session, *, job_ids: Collection[str]) -> set[str]:
    """Return those of the jobs whose engine has adapters to serve now."""
    statement = select(Endpoint.job_id).join(Job, col(Job.id) == col(Endpoint.job_id))
    wanted = (col(Endpoint.engine_id).is_not(None), col(Endpoint.asked_attempt) == col(Job.attempt))
    return set(session.exec(statement.where(col(Endpoint.job_id).in_(job_ids), *wanted)).all())


def list_states(session: Session) -> Sequence[tuple[Endpoint, Job]]:
    """List all endpoints for counts by state; a model or checkpoint has one at most."""
    return session.exec(select(Endpoint, Job).join(Job, col(Job.id) == col(Endpoint.job_id))).all()


def list_served_checkpoints(session: Session, *, limit: int) -> Sequence[tuple[str, datetime]]:
    """List the names and times of checkpoints that were ever served, those served last first."""
    is_of_it = (col(Checkpoint.job_id) == Endpoint.target_job_id) & (
        col(Checkpoint.step) == Endpoint.target_step
    )
    served = select(Endpoint.name, Checkpoint.created_at).join(Checkpoint, is_of_it)
    newest = served.order_by(col(Endpoint.created_at).desc(), col(Endpoint.id).desc())
    return session.exec(newest.limit(limit)).all()


def add_endpoint(session: Session, row: Endpoint) -> None:
    """Write one, new or changed."""
    session.add(row)
    session.flush()


def note_use(session: Session, *, endpoint_id: str) -> None:
    """Record that an endpoint is in use now, and the endpoint whose engine it shares, too."""
    engine = select(Endpoint.engine_id).where(Endpoint.id == endpoint_id).scalar_subquery()
    is_used = or_(col(Endpoint.id) == endpoint_id, col(Endpoint.id) == engine)
    session.exec(update(Endpoint).where(is_used).values(last_used_at=utc_now()))
