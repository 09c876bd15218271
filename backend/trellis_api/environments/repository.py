"""Queries on environments and on calls of their tools."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import delete, update
from sqlmodel import Session, col, or_, select, tuple_
from trellis_contracts.environments import EnvironmentState, ToolCallState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id
from trellis_api.environments.models import Environment, EnvironmentCall

PREFIX, CALL_PREFIX = "env", "ecl"
Position = tuple[datetime, str]
_OPEN_CALLS = (ToolCallState.QUEUED.value, ToolCallState.RUNNING.value)


def find_environment(session: Session, *, environment_id: str) -> Environment | None:
    """Return the environment with this ID; None for anything that is not an ID."""
    return session.get(Environment, environment_id) if is_id(environment_id, prefix=PREFIX) else None


def lock_environment(session: Session, *, environment_id: str, is_shared: bool = False) -> Environment | None:
    """Lock the environment until the transaction ends and return its state; shared locks prevent deletion."""
    if not is_id(environment_id, prefix=PREFIX):
        return None
    return session.get(
        Environment, environment_id, with_for_update={"read": is_shared}, populate_existing=True
    )


def find_environment_named(session: Session, *, name: str) -> Environment | None:
    """Return the environment with this name, or None."""
    return session.exec(select(Environment).where(Environment.name == name)).first()


def map_environment_names(session: Session, *, environment_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those environments that exist, by ID."""
    query = select(Environment.id, Environment.name).where(col(Environment.id).in_(list(environment_ids)))
    return dict(session.exec(query).all())


def list_environments(session: Session, *, after: Position | None, limit: int) -> Sequence[Environment]:
    """List environments, newest first."""
    query = select(Environment)
    if after:
        query = query.where(tuple_(col(Environment.created_at), col(Environment.id)) < after)
    newest_first = (col(Environment.created_at).desc(), col(Environment.id).desc())
    return session.exec(query.order_by(*newest_first).limit(limit)).all()


def add_environment(session: Session, environment: Environment) -> None:
    """Insert or update an environment; IntegrityError if the name is taken."""
    session.add(environment)
    session.flush()


def delete_environment(session: Session, environment: Environment) -> None:
    """Delete the row and, by cascade, its calls."""
    session.delete(environment)
    session.flush()


# -- for workers


def list_waiting(session: Session, *, lost_before: datetime) -> Sequence[str]:
    """List the ids of environments to make, oldest first, including those whose worker died."""
    is_lost = (col(Environment.state) == EnvironmentState.MAKING) & (
        col(Environment.touched_at) < lost_before
    )
    waits = or_(col(Environment.state) == EnvironmentState.QUEUED, is_lost)
    # One whose files are there waits for its rows, not for a worker.
    return session.exec(
        select(Environment.id)
        .where(waits, col(Environment.sha256).is_(None))
        .order_by(col(Environment.created_at))
    ).all()


def list_awaiting_rows(session: Session) -> Sequence[str]:
    """List the ids of environments whose files are there and whose rows are being imported."""
    return session.exec(
        select(Environment.id).where(
            col(Environment.state) == EnvironmentState.MAKING, col(Environment.sha256).is_not(None)
        )
    ).all()


def claim_environment(session: Session, *, environment_id: str, lost_before: datetime) -> int | None:
    """Take a waiting one, or one whose worker died; the number of the attempt, None where another has it."""
    now = utc_now()
    is_free = or_(
        col(Environment.state) == EnvironmentState.QUEUED,
        (col(Environment.state) == EnvironmentState.MAKING) & (col(Environment.touched_at) < lost_before),
    )
    claimed = session.exec(
        update(Environment)
        .where(col(Environment.id) == environment_id, is_free, col(Environment.sha256).is_(None))
        .values(
            state=EnvironmentState.MAKING.value,
            attempt=Environment.attempt + 1,
            started_at=now,
            touched_at=now,
        )
    )
    if claimed.rowcount != 1:
        return None
    row = lock_environment(session, environment_id=environment_id)
    return row.attempt if row else None


def touch_environment(session: Session, *, environment_id: str, attempt: int) -> bool:
    """Note a sign of life; False where it was deleted or another worker has taken it."""
    touched = session.exec(
        update(Environment)
        .where(
            col(Environment.id) == environment_id,
            col(Environment.state) == EnvironmentState.MAKING,
            col(Environment.attempt) == attempt,
        )
        .values(touched_at=utc_now())
    )
    return touched.rowcount == 1


def list_known(session: Session, *, environment_ids: Iterable[str]) -> set[str]:
    """Return those of the ids that exist."""
    return set(
        session.exec(select(Environment.id).where(col(Environment.id).in_(list(environment_ids)))).all()
    )


# -- calls


def find_call(session: Session, *, environment_id: str, call_id: str) -> EnvironmentCall | None:
    """Return the call with this ID, if it belongs to the environment."""
    call = session.get(EnvironmentCall, call_id) if is_id(call_id, prefix=CALL_PREFIX) else None
    return call if call is not None and call.environment_id == environment_id else None


def list_calls(session: Session, *, environment_id: str, limit: int) -> Sequence[EnvironmentCall]:
    """List an environment's tool calls, newest first."""
    query = select(EnvironmentCall).where(EnvironmentCall.environment_id == environment_id)
    newest_first = (col(EnvironmentCall.created_at).desc(), col(EnvironmentCall.id).desc())
    return session.exec(query.order_by(*newest_first).limit(limit)).all()


def add_call(session: Session, call: EnvironmentCall, *, kept: int) -> None:
    """Insert a call, and forget all finished ones but the newest."""
    session.add(call)
    session.flush()
    newest = [each.id for each in list_calls(session, environment_id=call.environment_id, limit=kept)]
    session.exec(
        delete(EnvironmentCall).where(
            col(EnvironmentCall.environment_id) == call.environment_id,
            col(EnvironmentCall.id).not_in(newest),
            col(EnvironmentCall.state).not_in(_OPEN_CALLS),
        )
    )


def list_open_calls(session: Session) -> Sequence[EnvironmentCall]:
    """List the calls that wait or run, oldest first."""
    query = select(EnvironmentCall).where(col(EnvironmentCall.state).in_(_OPEN_CALLS))
    return session.exec(query.order_by(col(EnvironmentCall.created_at))).all()


def claim_call(session: Session, *, call_id: str) -> bool:
    """Take a queued call; False where another worker has it."""
    now = utc_now()
    claimed = session.exec(
        update(EnvironmentCall)
        .where(col(EnvironmentCall.id) == call_id, col(EnvironmentCall.state) == ToolCallState.QUEUED)
        .values(state=ToolCallState.RUNNING.value, started_at=now, touched_at=now)
    )
    return claimed.rowcount == 1
