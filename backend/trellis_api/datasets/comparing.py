"""Comparisons of two versions: a worker makes them, and who asks for the same later finds them made."""

from typing import Literal

from sqlmodel import Session
from trellis_contracts.data_tasks import DATA_TASK_FINISHED, DataTaskKind, DiffTask
from trellis_data.json_rows import to_json
from trellis_data.statistics.model import Statistics
from trellis_data.versions.differences import Difference, find_difference, read_difference

from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service as tasks_service
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import repository, service, versions
from trellis_api.datasets.errors import DiffNotComputed, DiffNotPossible
from trellis_api.datasets.models import DatasetVersion
from trellis_api.datasets.schemas import ColumnChangeRead, DiffCreate, DiffRead, DiffRow, DiffRows
from trellis_api.datasets.store import open_store
from trellis_api.datasets.version_pages import reading

Kind = Literal["added", "removed", "changed"]


def start(
    session: Session, settings: Settings, *, dataset_id: str, request: DiffCreate
) -> tuple[DiffRead, DataTask | None]:
    """Return the outcome if it is known, else a task, shared by all callers, that computes it.

    The caller sends it.
    """
    before, after = _resolve(session, dataset_id, request)
    found = _find(settings, before, after, request.key)
    if found is not None:
        return _present(found), None
    _check_key(settings, before, after, request.key)
    task = _find_task(session, before, after, request.key)
    if task is None or task.state in DATA_TASK_FINISHED:
        order = DiffTask(before=before.id, key=request.key)
        task = tasks_service.create(session, request=order, dataset_id=dataset_id, version_id=after.id)
    return _present_task(session, before, after, request.key, task), task


def read(session: Session, settings: Settings, *, dataset_id: str, request: DiffCreate) -> DiffRead:
    """Return the outcome, or how far the comparison is."""
    before, after = _resolve(session, dataset_id, request)
    found = _find(settings, before, after, request.key)
    if found is not None:
        return _present(found)
    return _present_task(session, before, after, request.key, _find_task(session, before, after, request.key))


def read_rows(
    session: Session,
    settings: Settings,
    *,
    dataset_id: str,
    request: DiffCreate,
    split: str,
    kind: Kind,
    offset: int,
    limit: int,
) -> DiffRows:
    """Read a page of the rows that differ; 409 until the comparison is done."""
    before, after = _resolve(session, dataset_id, request)
    found = _find(settings, before, after, request.key)
    if found is None:
        raise DiffNotComputed("These versions haven't been compared yet. Start a comparison first.")
    if split not in found.splits:
        message = f"Neither version has the split '{split}'."
        raise DiffNotPossible(message, {"code": "split_unknown", "field": "split"})
    count = getattr(found.splits[split], kind)
    with reading(dataset_id):
        rows = read_difference(open_store(settings), found, split, kind, offset=offset, limit=limit)
    shown = [DiffRow(before=to_json(old), after=to_json(new)) for old, new in rows]
    return DiffRows(split=split, kind=kind, offset=offset, row_count=count, rows=shown)


def _resolve(session: Session, dataset_id: str, request: DiffCreate) -> tuple[DatasetVersion, DatasetVersion]:
    service.get_dataset(session, dataset_id=dataset_id)
    before = versions.resolve(session, dataset_id=dataset_id, revision=request.before)
    return before, versions.resolve(session, dataset_id=dataset_id, revision=request.after)


def _find(
    settings: Settings, before: DatasetVersion, after: DatasetVersion, key: str | None
) -> Difference | None:
    store = open_store(settings)
    with reading(before.dataset_id):
        return find_difference(store, store.version(before.id), store.version(after.id), key)


def _check_key(settings: Settings, before: DatasetVersion, after: DatasetVersion, key: str | None) -> None:
    if key is None:
        return
    with reading(before.dataset_id):
        trees = [open_store(settings).tree(row.tree) for row in (before, after)]
    for tree in trees:
        if key not in (column.name for column in tree.columns):
            message = f"Both versions must have the key column '{key}'."
            raise DiffNotPossible(message, {"code": "column_unknown", "field": "key"})


def _find_task(
    session: Session, before: DatasetVersion, after: DatasetVersion, key: str | None
) -> DataTask | None:
    """Return the newest task that was to compare the same versions by the same key."""
    tasks = repository.list_tasks_of(
        session, dataset_id=after.dataset_id, kind=DataTaskKind.DIFF, version_id=after.id
    )
    wanted = (before.id, key)
    return next((each for each in tasks if (each.request["before"], each.request.get("key")) == wanted), None)


def _present(found: Difference) -> DiffRead:
    old, new = (None if each is None else Statistics.model_validate(each) for each in found.statistics)
    return DiffRead(
        before=found.before,
        after=found.after,
        key=found.key,
        task=None,
        total=found.total,
        splits=found.splits,
        columns=[ColumnChangeRead(**each.model_dump()) for each in found.columns],
        statistics_before=old,
        statistics_after=new,
    )


def _present_task(
    session: Session,
    before: DatasetVersion,
    after: DatasetVersion,
    key: str | None,
    task: DataTask | None,
) -> DiffRead:
    shown = None if task is None else tasks_service.present(session, task, with_result=False)
    return DiffRead(
        before=before.id,
        after=after.id,
        key=key,
        task=shown,
        total=None,
        splits=None,
        columns=None,
        statistics_before=None,
        statistics_after=None,
    )
