"""Queries on versions of datasets and their names."""

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import Text, cast, literal, true
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, func, select

from trellis_api.datasets.models import DatasetRef, DatasetVersion

RefKind = Literal["branch", "tag"]


def find_version(session: Session, *, dataset_id: str, version_id: str) -> DatasetVersion | None:
    """Return the version with exactly this ID."""
    if "\x00" in version_id:  # which PostgreSQL does not take
        return None
    return session.get(DatasetVersion, (dataset_id, version_id))


def list_versions_like(
    session: Session, *, dataset_id: str, digits: str, limit: int
) -> Sequence[DatasetVersion]:
    """List the versions whose ids begin with these digits."""
    begins = col(DatasetVersion.id).startswith(digits, autoescape=True)
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id, begins)
    return session.exec(query.limit(limit)).all()


def list_versions(
    session: Session,
    *,
    dataset_id: str,
    tip: str | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> Sequence[DatasetVersion]:
    """List versions, newest first; with a tip only its ancestors."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    if tip is not None:
        query = query.where(col(DatasetVersion.id).in_(_select_led_to(session, dataset_id, tip)))
    if before is not None:
        query = query.where(DatasetVersion.number < before)
    return session.exec(query.order_by(col(DatasetVersion.number).desc()).limit(limit)).all()


def map_parents(session: Session, *, dataset_id: str) -> dict[str, list[str]]:
    """Return the parents of every version of a dataset."""
    query = select(DatasetVersion.id, DatasetVersion.parents).where(DatasetVersion.dataset_id == dataset_id)
    return {version_id: list(parents) for version_id, parents in session.exec(query)}


def next_number(session: Session, *, dataset_id: str) -> int:
    """Return the number that the next version gets."""
    newest = select(func.max(DatasetVersion.number)).where(DatasetVersion.dataset_id == dataset_id)
    return (session.exec(newest).one() or 0) + 1


def find_ref(session: Session, *, dataset_id: str, name: str) -> DatasetRef | None:
    """Return the branch or tag with this name."""
    if "\x00" in name:
        return None
    return session.get(DatasetRef, (dataset_id, name))


def list_refs(session: Session, *, dataset_id: str) -> Sequence[DatasetRef]:
    """List branches and tags by name."""
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


def _select_led_to(session: Session, dataset_id: str, tip: str) -> Any:
    """Select the IDs of a version and of all its ancestors, step by step from child to parents."""
    is_postgresql = session.get_bind().dialect.name == "postgresql"
    version = aliased(DatasetVersion)
    spread = func.jsonb_array_elements_text if is_postgresql else func.json_each
    parent = spread(version.parents).table_valued("value")
    parent = parent.render_derived() if is_postgresql else parent
    led = select(cast(literal(tip), Text).label("id")).cte("led", recursive=True)
    is_led = (col(version.id) == led.c.id) & (col(version.dataset_id) == dataset_id)
    parents = select(parent.c.value).select_from(version).join(led, is_led).join(parent, true())
    return select(led.union(parents).c.id)
