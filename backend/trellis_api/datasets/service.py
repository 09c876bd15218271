"""Decides about datasets: which there are, what they are called, and which may go."""

import logging
from collections.abc import Sequence

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.core.texts import number_name
from trellis_api.core.transaction_files import remove_after_commit
from trellis_api.core.uses import DATASETS
from trellis_api.data_tasks import service as tasks_service
from trellis_api.datasets import repository
from trellis_api.datasets.errors import DatasetInUse, DatasetNameTaken, DatasetNotFound
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.schemas import DatasetChange, DatasetOrigin, DatasetRead
from trellis_api.datasets.states import DatasetState

log = logging.getLogger(__name__)


def get_dataset(session: Session, *, dataset_id: str) -> Dataset:
    """Return the dataset; 404 if there is none."""
    dataset = repository.find_dataset(session, dataset_id=dataset_id)
    if dataset is None:
        raise DatasetNotFound(f"Dataset '{dataset_id}' not found.")
    return dataset


def list_page(session: Session, *, text: str | None, cursor: str | None, limit: int) -> Page[DatasetRead]:
    """List one page, newest first."""
    after = decode_time_position(cursor) if cursor else None
    rows = repository.list_datasets(session, text=text, after=after, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=present_many(session, shown), next_cursor=next_cursor)


def present(session: Session, dataset: Dataset) -> DatasetRead:
    """Present a dataset as clients see it."""
    return present_many(session, [dataset])[0]


def present_many(session: Session, datasets: Sequence[Dataset]) -> list[DatasetRead]:
    """Present datasets as clients see them; those without rows with the task that makes the first ones."""
    making = {each.task_id for each in datasets if each.task_id and each.state != DatasetState.READY}
    found = repository.list_tasks_of_ids(session, task_ids=making)
    tasks = {task.id: task for task in tasks_service.present_many(session, found)}
    return [
        DatasetRead.model_validate({**each.model_dump(), "task": tasks.get(each.task_id or "")})
        for each in datasets
    ]


def add_creating(
    session: Session,
    *,
    name: str,
    description: str,
    source: DatasetOrigin,
    is_default_name: bool = False,
) -> Dataset:
    """Create a dataset without rows, for a task to fill. A default name gets a number if it is taken."""
    asked, number = name, 1
    while True:
        if repository.find_dataset_named(session, name=name) is None:
            try:
                with session.begin_nested():
                    dataset = Dataset(
                        id=new_id("ds"),
                        name=name,
                        description=description,
                        source=source.model_dump(mode="json"),
                    )
                    repository.add_dataset(session, dataset)
            except IntegrityError:  # taken at this very moment
                log.info("the name '%s' was taken meanwhile", name)
            else:
                return dataset
        if not is_default_name:
            raise _name_taken(name)
        number += 1
        name = number_name(asked, number)


def change(session: Session, *, dataset_id: str, request: DatasetChange) -> Dataset:
    """Rename or describe; what is not given stays."""
    dataset = get_dataset(session, dataset_id=dataset_id)
    if request.name is not None and request.name != dataset.name:
        if repository.find_dataset_named(session, name=request.name):
            raise _name_taken(request.name)
        dataset.name = request.name
    if request.description is not None:
        dataset.description = request.description
    if request.licences is not None:
        dataset.licences = list(dict.fromkeys(request.licences))
    dataset.updated_at = utc_now()
    try:
        repository.add_dataset(session, dataset)
    except IntegrityError as error:
        raise _name_taken(str(request.name)) from error
    return dataset


def delete(session: Session, settings: Settings, *, dataset_id: str) -> None:
    """Delete the dataset with its versions, and the files once that is committed.

    Refused while something unfinished uses it. Its rows leave the store with the next tidying.
    """
    # Locked before the uses are looked at: a job that is being created holds it, and is seen afterwards.
    repository.lock_dataset(session, dataset_id=dataset_id)
    dataset = get_dataset(session, dataset_id=dataset_id)
    _refuse_in_use(session, dataset_id=dataset_id)
    for task_id in repository.delete_tasks_of(session, dataset_id=dataset_id):
        remove_after_commit(session, settings.data_task_dir(task_id))
    repository.delete_dataset(session, dataset)
    remove_after_commit(session, settings.data_root / "datasets" / dataset_id)


def _refuse_in_use(session: Session, *, dataset_id: str) -> None:
    found = DATASETS.find(session, dataset_id)
    tasks = [f"{use.name} {use.id}" for use in found if use.kind == "task"]
    dry_runs = [use.label for use in found if use.kind == "dry_run"]
    jobs = [use.label for use in found if use.kind not in ("task", "dry_run")]
    if found:
        users = ", ".join([*jobs, *dry_runs, *tasks])
        raise DatasetInUse(
            f"The dataset is used by unfinished work: {users[:500]}.",
            {"jobs": jobs, "dry_runs": dry_runs, "tasks": tasks},
        )


def _name_taken(name: str) -> DatasetNameTaken:
    return DatasetNameTaken(f"A dataset named '{name}' already exists.", {"name": name})
