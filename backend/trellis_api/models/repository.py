"""Queries on models."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, update
from sqlmodel import Session, col, func, or_, select, tuple_

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id
from trellis_api.models.models import Model
from trellis_api.models.schemas import FetchProgress, ModelState


def find_model(session: Session, *, model_id: str) -> Model | None:
    """Return the model with this ID; None for anything that is not an ID."""
    return session.get(Model, model_id) if is_id(model_id, prefix="mdl") else None


def lock_model(session: Session, *, model_id: str, is_shared: bool = False) -> Model | None:
    """Lock the model until the transaction ends and return its state; a shared lock prevents deletion.

    (On SQLite the writing transaction holds the lock of the whole database already.)
    """
    if not is_id(model_id, prefix="mdl"):
        return None
    return session.get(Model, model_id, with_for_update={"read": is_shared}, populate_existing=True)


def map_model_names(session: Session, *, model_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those models that exist, by ID."""
    wanted = col(Model.id).in_(list(model_ids))
    return dict(session.exec(select(Model.id, Model.name).where(wanted)).all())


def list_ready(session: Session, *, model_ids: Sequence[str]) -> set[str]:
    """Return the IDs of those models whose files are here."""
    is_ready = col(Model.state) == ModelState.READY.value
    return set(session.exec(select(Model.id).where(col(Model.id).in_(model_ids), is_ready)))


def find_model_named(session: Session, *, name: str) -> Model | None:
    """Return the model with this name, or None."""
    return session.exec(select(Model).where(Model.name == name)).first()


def list_models_called(session: Session, *, called: Sequence[str]) -> Sequence[Model]:
    """List the models that have one of these texts as their id, or as their name in any capitals."""
    names = [each.lower() for each in called]
    is_called = or_(col(Model.id).in_(called), col(Model.name).in_(called), func.lower(Model.name).in_(names))
    return session.exec(select(Model).where(is_called)).all()


def list_models(
    session: Session,
    *,
    text: str | None,
    state: ModelState | None,
    after: tuple[datetime, str] | None,
    limit: int,
) -> list[Model]:
    """List models, newest first; ``text`` is searched in names, descriptions and architectures."""
    query = select(Model)
    if text:
        fields = (Model.name, Model.description, Model.architecture)
        query = query.where(or_(*(col(field).icontains(text, autoescape=True) for field in fields)))
    if state:
        query = query.where(Model.state == state.value)
    if after:
        query = query.where(tuple_(col(Model.created_at), col(Model.id)) < after)
    query = query.order_by(col(Model.created_at).desc(), col(Model.id).desc())
    return list(session.exec(query.limit(limit)))


def list_children(session: Session, *, model_id: str, limit: int) -> list[Model]:
    """List the models that trainings of this model have made, newest first."""
    statement = select(Model).where(Model.parent_model_id == model_id).order_by(col(Model.created_at).desc())
    return list(session.exec(statement.limit(limit)))


def list_exported_steps(session: Session, *, job_id: str) -> set[int]:
    """Return the steps of a job whose checkpoints have become models."""
    steps = session.exec(select(Model.source_step).where(Model.source_job_id == job_id))
    return {step for step in steps if step is not None}


def list_fetchable(session: Session, *, lost_before: datetime) -> list[str]:
    """List the ids of models that wait to be fetched, or whose fetch has been silent since then."""
    return list(
        session.exec(select(Model.id).where(_waits_for_fetch(lost_before)).order_by(col(Model.created_at)))
    )


def claim_fetch(session: Session, *, model_id: str, lost_before: datetime) -> datetime | None:
    """Take the fetch of a model; None where another worker has it or there is nothing to fetch.

    The time that is returned is what ``touch_fetch`` demands: by it a worker knows a fetch as its own.
    """
    claim = utc_now()
    claimed = session.exec(
        update(Model)
        .where(col(Model.id) == model_id, _waits_for_fetch(lost_before))
        .values(
            state=ModelState.FETCHING.value,
            state_changed_at=claim,
            state_reason=None,
            state_cause=None,
            progress=None,
        )
    )
    return claim if claimed.rowcount == 1 else None


def touch_fetch(
    session: Session, *, model_id: str, claim: datetime, progress: FetchProgress | None
) -> datetime | None:
    """Note progress, which is also the sign of life, and return the time that the next one demands.

    None where the model is gone, or the fetch was cancelled or is another worker's now.
    """
    now = utc_now()
    is_own = (col(Model.state) == ModelState.FETCHING.value, col(Model.state_changed_at) == claim)
    touched = session.exec(
        update(Model)
        .where(col(Model.id) == model_id, *is_own)
        .values(state_changed_at=now, progress=progress.model_dump(mode="json") if progress else None)
    )
    return now if touched.rowcount == 1 else None


def count_models(session: Session) -> int:
    """Count the models."""
    return session.exec(select(func.count()).select_from(Model)).one()


def add_model(session: Session, model: Model) -> None:
    """Insert a model; IntegrityError if the name is taken."""
    session.add(model)
    session.flush()


def delete_model(session: Session, model: Model) -> None:
    """Delete the row."""
    session.delete(model)
    session.flush()


def _waits_for_fetch(lost_before: datetime) -> ColumnElement[bool]:
    return or_(
        col(Model.state) == ModelState.PENDING.value,
        (col(Model.state) == ModelState.FETCHING.value) & (col(Model.state_changed_at) < lost_before),
    )
