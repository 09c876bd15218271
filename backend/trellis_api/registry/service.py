"""Decides about named models: which version comes next, and where an alias stands."""

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.models.repository import find_model, lock_model
from trellis_api.models.service import get_model
from trellis_api.registry import repository
from trellis_api.registry.errors import AliasMoved, NamedModelNotFound, NothingToRollBack
from trellis_api.registry.models import ModelAlias, ModelVersion, NamedModel, Promotion
from trellis_api.registry.schemas import (
    GateResult,
    NamedModelRead,
    NamedVersionRead,
    PromotionCreate,
    VersionCreate,
)


def add_version(session: Session, *, request: VersionCreate) -> NamedModel:
    """Add a model as the next version of a name, which is created with its first version."""
    lock_model(session, model_id=request.model, is_shared=True)
    model = get_model(session, model_id=request.model)
    named = repository.lock_name(session, name=request.name)
    if named is None:
        named = _make_name(session, request.name)
    version = ModelVersion(
        name=request.name,
        number=repository.next_number(session, name=request.name),
        model_id=model.id,
        model_name=model.name,
        note=request.note,
    )
    repository.add(session, version)
    return named


def _make_name(session: Session, name: str) -> NamedModel:
    """Create a new name, or return the row that somebody else created at the same moment."""
    named = NamedModel(name=name)
    try:
        with session.begin_nested():
            repository.add(session, named)
    except IntegrityError:
        found = repository.lock_name(session, name=name)
        if found is None:
            raise
        return found
    return named


def get_named(session: Session, *, name: str) -> NamedModel:
    """Return the named model; 404 without one."""
    named = session.get(NamedModel, name)
    if named is None:
        raise NamedModelNotFound(f"Nothing is registered as '{name}'.")
    return named


def get_version(session: Session, *, name: str, number: int) -> ModelVersion:
    """Return a version; 404 without one."""
    version = repository.find_version(session, name=name, number=number)
    if version is None:
        raise NamedModelNotFound(f"'{name}' has no version {number}.")
    return version


def find_current(session: Session, *, name: str, alias: str) -> int | None:
    """Return the version that an alias points to; None if it points to none yet."""
    found = repository.find_alias(session, name=name, alias=alias)
    return found.version if found else None


def promote(
    session: Session,
    *,
    name: str,
    alias: str,
    request: PromotionCreate,
    expected: int | None,
    gate: GateResult | None,
) -> NamedModel:
    """Let an alias stand on a version. ``expected`` is where it stood when the gate was looked at."""
    named = _lock(session, name)
    version = get_version(session, name=name, number=request.version)
    _require_model(session, version)
    current = find_current(session, name=name, alias=alias)
    if current != expected:
        raise AliasMoved(
            f"'{name}:{alias}' now points to version {current}. Review and try again.",
            {"version": current},
        )
    _move(session, named, alias, to=request.version, kind="promote", note=request.note, gate=gate)
    return named


def roll_back(session: Session, *, name: str, alias: str, note: str) -> NamedModel:
    """Let an alias stand where it stood before its last promotion that was not taken back."""
    named = _lock(session, name)
    current = find_current(session, name=name, alias=alias)
    if current is None:
        raise NamedModelNotFound(f"'{name}' has no alias '{alias}'.")
    before = _find_before(session, name=name, alias=alias)
    if before is None:
        raise NothingToRollBack(f"'{name}:{alias}' has no previous version to roll back to.")
    _move(session, named, alias, to=before, kind="rollback", note=note, gate=None)
    return named


def delete(session: Session, *, name: str) -> None:
    """Forget a name with its versions and its history; the models stay."""
    session.delete(_lock(session, name))
    session.flush()


def present(session: Session, named: NamedModel) -> NamedModelRead:
    """Present a named model as clients see it."""
    aliases = {row.alias: row.version for row in repository.list_aliases(session, name=named.name)}
    versions = [
        NamedVersionRead(
            number=row.number,
            model=row.model_id,
            model_name=row.model_name,
            exists=find_model(session, model_id=row.model_id) is not None,
            aliases=[alias for alias, number in aliases.items() if number == row.number],
            note=row.note,
            created_at=row.created_at,
        )
        for row in repository.list_versions(session, name=named.name)
    ]
    return NamedModelRead(name=named.name, aliases=aliases, versions=versions, created_at=named.created_at)


def _find_before(session: Session, *, name: str, alias: str) -> int | None:
    """Return the newest version before the current one that still exists.

    Each rollback undoes one promotion.
    """
    stood: list[int] = []
    for step in reversed(repository.list_promotions(session, name=name, alias=alias)):
        if step.kind == "rollback":
            while stood and stood[-1] != step.to_version:
                stood.pop()
        elif not stood or stood[-1] != step.to_version:
            stood.append(step.to_version)
    for number in reversed(stood[:-1]):
        version = repository.find_version(session, name=name, number=number)
        if version is not None and find_model(session, model_id=version.model_id) is not None:
            return number
    return None


def _move(
    session: Session,
    named: NamedModel,
    alias: str,
    *,
    to: int,
    kind: str,
    note: str,
    gate: GateResult | None,
) -> None:
    row = repository.find_alias(session, name=named.name, alias=alias)
    before = row.version if row else None
    if row is None:
        row = ModelAlias(name=named.name, alias=alias, version=to)
    row.version, row.moved_at = to, utc_now()
    repository.add(session, row)
    step = Promotion(
        name=named.name,
        alias=alias,
        from_version=before,
        to_version=to,
        kind=kind,
        note=note,
        gate=gate.model_dump(mode="json") if gate else None,
    )
    repository.add(session, step)


def _require_model(session: Session, version: ModelVersion) -> None:
    # Held, so that it is not deleted before the alias stands on it.
    if lock_model(session, model_id=version.model_id, is_shared=True) is None:
        raise NamedModelNotFound(
            f"The model '{version.model_name}' of version {version.number} was deleted.",
            {"model": version.model_id},
        )


def _lock(session: Session, name: str) -> NamedModel:
    named = repository.lock_name(session, name=name)
    if named is None:
        raise NamedModelNotFound(f"Nothing is registered as '{name}'.")
    return named
