"""What data tasks use: rows that they read, models that write or count, uploads that they import."""

from collections.abc import Collection, Iterable

from sqlalchemy import String, cast
from sqlmodel import Session, col, or_, select
from trellis_contracts.data_tasks import DATA_TASK_FINISHED, DataTaskKind

from trellis_api.core.uses import Use, VersionKey, list_newest
from trellis_api.data_tasks import repository
from trellis_api.data_tasks.models import DataTask
from trellis_api.data_tasks.repository import UNFINISHED, WITHOUT_RESULT


def find_of_dataset(session: Session, dataset_id: str) -> Iterable[Use]:
    """List unfinished tasks that read a dataset, make it, or have it as a resource."""
    tasks = [*repository.list_unfinished_tasks(session, dataset_id=dataset_id)]
    for task in repository.list_all_unfinished(session):
        resources = task.request.get("resources") or {}
        if any(each.get("dataset_id") == dataset_id for each in resources.values()):
            tasks.append(task)
    return [_describe(task) for task in tasks]


def find_of_version(session: Session, version: VersionKey) -> Iterable[Use]:
    """List tasks that read a version, or name it as something to compare with or to stay clear of."""
    reads = (col(DataTask.dataset_id) == version.dataset_id) & (col(DataTask.version_id) == version.id)
    names = cast(col(DataTask.request), String).contains(version.id)
    query = select(DataTask).options(WITHOUT_RESULT).where(or_(reads, names))
    query = query.order_by(col(DataTask.created_at).desc())
    return [_describe(task) for task in list_newest(session, query, col(DataTask.state).in_(UNFINISHED))]


def find_of_model(session: Session, model_id: str) -> Iterable[Use]:
    """List unfinished tasks that a model writes rows for, or whose tokens they count."""
    return [
        _describe(task)
        for task in repository.list_all_unfinished(session)
        if model_id in (task.request.get("model"), (task.request.get("pipeline") or {}).get("tokenizer"))
    ]


def find_of_uploads(session: Session, upload_ids: Collection[str]) -> dict[str, list[Use]]:
    """List unfinished imports of uploads."""
    query = select(DataTask.id, DataTask.request).where(
        col(DataTask.state).not_in(DATA_TASK_FINISHED), col(DataTask.kind) == DataTaskKind.IMPORT
    )
    found: dict[str, list[Use]] = {upload_id: [] for upload_id in upload_ids}
    for task_id, request in session.exec(query):
        upload_id = str(request.get("source", {}).get("upload", ""))
        if upload_id in found:
            found[upload_id].append(Use("task", task_id, DataTaskKind.IMPORT))
    return found


def _describe(task: DataTask) -> Use:
    return Use("task", task.id, task.kind, state=task.state, is_unfinished=task.state in UNFINISHED)
