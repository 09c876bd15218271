"""Queries on named models."""

from collections.abc import Sequence

from sqlmodel import Session, SQLModel, col, func, select

from trellis_api.registry.models import ModelAlias, ModelVersion, NamedModel, Promotion

#: More than a reader has use for.
MAX_NAMES, MAX_STEPS = 1000, 500


def list_names(session: Session) -> Sequence[NamedModel]:
    """List all names, sorted."""
    return session.exec(select(NamedModel).order_by(col(NamedModel.name)).limit(MAX_NAMES)).all()


def lock_name(session: Session, *, name: str) -> NamedModel | None:
    """Lock the name until the transaction ends, so that concurrent changes see each other's result."""
    return session.get(NamedModel, name, with_for_update=True, populate_existing=True)


def list_versions(session: Session, *, name: str) -> Sequence[ModelVersion]:
    """List the versions of a name, newest first."""
    query = select(ModelVersion).where(ModelVersion.name == name)
    return session.exec(query.order_by(col(ModelVersion.number).desc())).all()


def find_version(session: Session, *, name: str, number: int) -> ModelVersion | None:
    """Find one version, or None."""
    return session.get(ModelVersion, (name, number))


def next_number(session: Session, *, name: str) -> int:
    """Return the number of the next version."""
    newest = session.exec(select(func.max(ModelVersion.number)).where(ModelVersion.name == name)).one()
    return int(newest or 0) + 1


def list_aliases(session: Session, *, name: str | None = None) -> Sequence[ModelAlias]:
    """List the aliases of a name, or all."""
    query = select(ModelAlias).order_by(col(ModelAlias.name), col(ModelAlias.alias))
    return session.exec(query.where(ModelAlias.name == name) if name else query).all()


def find_alias(session: Session, *, name: str, alias: str) -> ModelAlias | None:
    """Find an alias, or None."""
    return session.get(ModelAlias, (name, alias), populate_existing=True)


def list_promotions(session: Session, *, name: str, alias: str | None = None) -> Sequence[Promotion]:
    """List promotions, newest first."""
    query = select(Promotion).where(Promotion.name == name)
    if alias is not None:
        query = query.where(Promotion.alias == alias)
    return session.exec(query.order_by(col(Promotion.id).desc()).limit(MAX_STEPS)).all()


def names_using(session: Session, *, model_id: str) -> list[str]:
    """List the aliases that point to a version with this model."""
    query = (
        select(ModelAlias.name, ModelAlias.alias)
        .join(
            ModelVersion,
            (col(ModelVersion.name) == col(ModelAlias.name))
            & (col(ModelVersion.number) == col(ModelAlias.version)),
        )
        .where(ModelVersion.model_id == model_id)
    )
    return [f"{name}:{alias}" for name, alias in session.exec(query)]


def add(session: Session, row: SQLModel) -> None:
    """Write a row."""
    session.add(row)
    session.flush()
