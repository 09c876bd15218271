"""Statistics of versions: made with them, or asked for with lengths in a model's tokens."""

from sqlmodel import Session
from trellis_contracts.data_tasks import DataTaskKind, DataTaskState, StatisticsTask, TokensTask
from trellis_data.statistics.model import Statistics

from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service as tasks_service
from trellis_api.data_tasks.models import DataTask
from trellis_api.datasets import repository, service, versions
from trellis_api.datasets.rows import reading
from trellis_api.datasets.schemas import StatisticsCreate, StatisticsRead, TokensCreate
from trellis_api.datasets.store import open_store
from trellis_api.pipelines.needs import find_model


def read(
    session: Session, settings: Settings, *, dataset_id: str, revision: str | None, model: str | None
) -> StatisticsRead:
    """What is known of a version."""
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=revision)
    tasks = [
        task
        for task in repository.list_tasks_of(
            session, dataset_id=dataset_id, kind=DataTaskKind.STATISTICS, version_id=version.id
        )
        if task.request.get("model") == model
    ]
    done = next((task for task in tasks if task.state == DataTaskState.SUCCEEDED and task.result), None)
    found = done.result if done else None
    if found is None and model is None:
        with reading(dataset_id):
            store = open_store(settings)
            found = store.statistics(store.version(version.id))
    return StatisticsRead(
        version=version.id,
        model=model,
        statistics=None if found is None else Statistics.model_validate(found),
        task=tasks_service.present(session, tasks[0], with_result=False) if tasks else None,
    )


def compute(session: Session, *, dataset_id: str, request: StatisticsCreate) -> DataTask:
    """Ask for statistics; the same computation that waits or runs serves all who ask."""
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=request.version)
    if request.model is not None:
        find_model(session, model_id=request.model)
    for task in repository.list_tasks_of(
        session, dataset_id=dataset_id, kind=DataTaskKind.STATISTICS, version_id=version.id
    ):
        is_going_on = task.state in (DataTaskState.QUEUED, DataTaskState.RUNNING)
        if is_going_on and task.request.get("model") == request.model:
            return task
    order = StatisticsTask(model=request.model)
    return tasks_service.create(session, request=order, dataset_id=dataset_id, version_id=version.id)


def tokenize(session: Session, *, dataset_id: str, request: TokensCreate) -> DataTask:
    """Ask for rows as a model is trained on them."""
    service.get_dataset(session, dataset_id=dataset_id)
    version = versions.resolve(session, dataset_id=dataset_id, revision=request.version)
    split = versions.choose_split(version, request.split)
    find_model(session, model_id=request.model)
    order = TokensTask(
        model=request.model,
        split=split,
        offset=request.offset,
        limit=request.limit,
        max_length=request.max_length,
    )
    return tasks_service.create(session, request=order, dataset_id=dataset_id, version_id=version.id)
