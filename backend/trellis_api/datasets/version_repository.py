"""Queries on versions of datasets and their names."""

from collections.abc import Collection, Sequence
from typing import Literal

from sqlmodel import Session, col, func, select

from trellis_api.datasets.models import DatasetRef, DatasetVersion

RefKind = Literal["branch", "tag"]


def find_version(session: Session, *, dataset_id: str, version_id: str) -> DatasetVersion | None:
    """The version of exactly this id."""
    if "\x00" in version_id:  # which PostgreSQL does not take
        return None
    return session.get(DatasetVersion, (dataset_id, version_id))


def list_versions_like(
    session: Session, *, dataset_id: str, digits: str, limit: int
) -> Sequence[DatasetVersion]:
    """Versions whose ids begin with these digits."""
    begins = col(DatasetVersion.id).startswith(digits, autoescape=True)
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id, begins)
    return session.exec(query.limit(limit)).all()


def list_versions(
    session: Session, *, dataset_id: str, before: int | None = None, limit: int | None = None
) -> Sequence[DatasetVersion]:
    """Newest first."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    if before is not None:
        query = query.where(DatasetVersion.number < before)
    return session.exec(query.order_by(col(DatasetVersion.number).desc()).limit(limit)).all()


def list_versions_of_ids(
    session: Session, *, dataset_id: str, version_ids: Collection[str]
) -> Sequence[DatasetVersion]:
    """Those that exist."""
    is_wanted = col(DatasetVersion.id).in_(list(version_ids))
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id, is_wanted)
    return session.exec(query).all()


def map_parents(session: Session, *, dataset_id: str) -> dict[str, list[str]]:
    """The parents of every version of a dataset."""
    query = select(DatasetVersion.id, DatasetVersion.parents).where(DatasetVersion.dataset_id == dataset_id)
    return {version_id: list(parents) for version_id, parents in session.exec(query)}


def list_ids_of_all(session: Session) -> Sequence[str]:
    """The versions of all datasets, for the store to keep."""
    return session.exec(select(DatasetVersion.id).distinct()).all()


def next_number(session: Session, *, dataset_id: str) -> int:
    """The number of the version that comes next."""
    newest = select(func.max(DatasetVersion.number)).where(DatasetVersion.dataset_id == dataset_id)
    return (session.exec(newest).one() or 0) + 1


def find_ref(session: Session, *, dataset_id: str, name: str) -> DatasetRef | None:
    """The branch or tag of this name."""
    if "\x00" in name:
        return None
    return session.get(DatasetRef, (dataset_id, name))


def list_refs(session: Session, *, dataset_id: str) -> Sequence[DatasetRef]:
    """Branches and tags by name."""
    query = select(DatasetRef).where(DatasetRef.dataset_id == dataset_id)
    return session.exec(query.order_by(col(DatasetRef.name))).all()


def add(session: Session, row: DatasetVersion | DatasetRef) -> None:
    """Write a new or changed row."""
    session.add(row)
    session.flush()


def delete(session: Session, row: DatasetVersion | DatasetRef) -> None:
    """Delete the row."""
    session.delete(row)
    session.flush()
