"""Queries on datasets."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sqlalchemy import delete
from sqlmodel import Session, col, func, or_, select, tuple_

from trellis_api.core.ids import is_id
from trellis_api.data_tasks.models import DataTask
from trellis_api.data_tasks.repository import WITHOUT_RESULT
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.states import DatasetState


def find_dataset(session: Session, *, dataset_id: str) -> Dataset | None:
    """Return the dataset with this ID; None for anything that is not an ID."""
    return session.get(Dataset, dataset_id) if is_id(dataset_id, prefix="ds") else None


def lock_dataset(session: Session, *, dataset_id: str, is_shared: bool = False) -> Dataset | None:
    """Lock the dataset until the transaction ends and return its state; a shared lock prevents deletion.

    (On SQLite the writing transaction holds the lock of the whole database already.)
    """
    if not is_id(dataset_id, prefix="ds"):
        return None
    return session.get(Dataset, dataset_id, with_for_update={"read": is_shared}, populate_existing=True)


def map_dataset_names(session: Session, *, dataset_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those datasets that exist, by ID."""
    wanted = col(Dataset.id).in_(list(dataset_ids))
    return dict(session.exec(select(Dataset.id, Dataset.name).where(wanted)).all())


def find_dataset_named(session: Session, *, name: str) -> Dataset | None:
    """Return the dataset with this name, or None."""
    return session.exec(select(Dataset).where(Dataset.name == name)).first()


def list_datasets(
    session: Session, *, text: str | None, after: tuple[datetime, str] | None, limit: int
) -> list[Dataset]:
    """List datasets, newest first; ``text`` is searched in names and descriptions, ignoring case."""
    query = select(Dataset)
    if text:
        query = query.where(
            or_(
                col(Dataset.name).icontains(text, autoescape=True),
                col(Dataset.description).icontains(text, autoescape=True),
            )
        )
    if after:
        query = query.where(tuple_(col(Dataset.created_at), col(Dataset.id)) < after)
    query = query.order_by(col(Dataset.created_at).desc(), col(Dataset.id).desc())
    return list(session.exec(query.limit(limit)))


def count_datasets(session: Session) -> int:
    """Count the datasets."""
    return session.exec(select(func.count()).select_from(Dataset)).one()


def map_samples(session: Session) -> dict[str, str]:
    """Map each sample's name to its newest dataset, without those whose import failed."""
    source = col(Dataset.source)
    query = (
        select(source["name"].as_string(), Dataset.id)
        .where(source["kind"].as_string() == "sample", col(Dataset.state) != DatasetState.FAILED)
        .order_by(col(Dataset.created_at), col(Dataset.id))
    )
    return dict(session.exec(query).all())


def list_ids_being_made(session: Session) -> set[str]:
    """List the ids of the datasets that wait for their first rows."""
    is_being_made = col(Dataset.state) == DatasetState.CREATING
    return set(session.exec(select(Dataset.id).where(is_being_made)).all())


def add_dataset(session: Session, dataset: Dataset) -> None:
    """Insert a dataset; IntegrityError if the name is taken."""
    session.add(dataset)
    session.flush()


def delete_dataset(session: Session, dataset: Dataset) -> None:
    """Delete the row."""
    session.delete(dataset)
    session.flush()


def list_tasks_of_ids(session: Session, *, task_ids: Collection[str]) -> Sequence[DataTask]:
    """List the tasks with these IDs that exist."""
    if not task_ids:
        return []
    query = select(DataTask).where(col(DataTask.id).in_(list(task_ids)))
    return session.exec(query.options(WITHOUT_RESULT)).all()


def list_tasks_of(
    session: Session, *, dataset_id: str, kind: str, version_id: str | None = None
) -> Sequence[DataTask]:
    """List the tasks of a kind that read a dataset, or one of its versions; newest first."""
    query = select(DataTask).where(DataTask.dataset_id == dataset_id, DataTask.kind == kind)
    if version_id is not None:
        query = query.where(DataTask.version_id == version_id)
    newest_first = (col(DataTask.created_at).desc(), col(DataTask.id).desc())
    return session.exec(query.options(WITHOUT_RESULT).order_by(*newest_first)).all()


def delete_tasks_of(session: Session, *, dataset_id: str) -> Sequence[str]:
    """Delete a dataset's tasks, but not those that made another one, whose lineage they are; their ids."""
    is_own = or_(col(DataTask.made_dataset_id).is_(None), col(DataTask.made_dataset_id) == dataset_id)
    ids = session.exec(select(DataTask.id).where(DataTask.dataset_id == dataset_id, is_own)).all()
    session.exec(delete(DataTask).where(col(DataTask.id).in_(ids)))
    return ids
